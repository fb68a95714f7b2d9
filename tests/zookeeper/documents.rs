//! Every command in the documents is run, word for word, against a real server.
//!
//! A block of `sh` must end with status 0. A comment in the line before it says what else is to be expected:
//! `<!-- exit status N: why -->`, `<!-- runs until it is stopped -->`, or `<!-- not run here: why -->`.
//! What the commands of the documents take for granted (a service, a report) is in `tests/documents/scenery`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HELP: &str = "the documents' commands need root, `apt-get install util-linux iproute2 curl`, and ZooKeeper's jar";
/// Of `timeout(1)`.
const STOPPED: i32 = 124;

/// One block of a document.
struct Block {
    /// The document and the line.
    place: String,
    /// Where it is run: an example's in its own folder.
    folder: PathBuf,
    text: String,
    /// `None`: it is not run, for this reason.
    expected: Result<i32, String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages at the root, and those below `docs` and `examples`.
fn documents() -> Vec<PathBuf> {
    fn pages(folder: &Path, is_deep: bool, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if is_deep && path.is_dir() {
                pages(&path, true, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let mut documents = Vec::new();
    pages(root(), false, &mut documents);
    pages(&root().join("docs"), true, &mut documents);
    pages(&root().join("examples"), true, &mut documents);
    documents.sort();
    documents
}

fn expected(comment: &str) -> Result<i32, String> {
    let said = comment.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    let Some(said) = said else { return Ok(0) };
    match said.split_once(": ") {
        _ if said == "runs until it is stopped" => Ok(STOPPED),
        Some(("not run here", why)) => Err(why.to_owned()),
        Some((status, _)) => Ok(status.strip_prefix("exit status ").and_then(|code| code.parse().ok()).unwrap_or(0)),
        None => Ok(0),
    }
}

fn blocks(document: &Path) -> Vec<Block> {
    let (name, page) = (document.strip_prefix(root()).unwrap(), fs::read_to_string(document).unwrap());
    let is_example = name.starts_with("examples");
    let folder =
        if is_example { document.parent().unwrap().to_owned() } else { root().join("tests/documents/scenery") };
    let (mut blocks, mut block, mut comment): (Vec<Block>, Option<Block>, &str) = (Vec::new(), None, "");
    let mut is_other = false;
    for (at, line) in page.lines().enumerate() {
        let place = format!("{}:{}", name.display(), at + 1);
        match (line, &mut block) {
            ("```", Some(_)) => blocks.extend(block.take()),
            (line, Some(block)) => block.text.extend([line, "\n"]),
            ("```sh", None) if !is_other => {
                block = Some(Block { place, folder: folder.clone(), text: String::new(), expected: expected(comment) });
            }
            (line, None) => {
                is_other ^= line.starts_with("```");
                let is_hidden = ["```bash", "```console", "```shell", "    zk-leader", "    make ", "    bash "];
                assert!(!is_hidden.iter().any(|start| line.starts_with(start)), "{place}: write commands as ```sh");
            }
        }
        comment = line;
    }
    assert!(block.is_none() && !is_other, "{}: a block has no end", name.display());
    blocks
}

/// The block of a document that has this in it: for a test of its own, which runs it where its words are true.
pub(super) fn block_with(document: &str, word: &str) -> String {
    let blocks = blocks(&root().join(document));
    let found: Vec<_> = blocks.into_iter().filter(|block| block.text.contains(word)).collect();
    assert_eq!(found.len(), 1, "blocks of {document} with {word}");
    found[0].text.clone()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-R").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "{} was not copied", from.display());
}

#[test]
fn every_command_of_the_documents_does_what_they_say() {
    let blocks: Vec<_> = documents().iter().flat_map(|document| blocks(document)).collect();
    let (run, left_out): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block.expected.is_ok());
    let directory = tempfile::tempdir().unwrap();
    let of = |index: usize| directory.path().join(format!("{index:03}"));
    for (index, block) in run.iter().enumerate() {
        fs::create_dir(of(index)).unwrap();
        copy(&block.folder, &of(index).join("cwd"));
        fs::write(of(index).join("block.sh"), &block.text).unwrap();
        let runs = if block.expected == Ok(STOPPED) { "until stopped" } else { "" };
        fs::write(of(index).join("runs"), runs).unwrap();
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_zk-leader-run")).parent().unwrap();
    let mut boxed = Command::new("setpriv");
    boxed.args(["--pdeathsig", "TERM", "bash"]).arg(root().join("tests/documents/box.sh"));
    let output = boxed.arg(directory.path()).arg(programs).arg(root()).stdin(Stdio::null()).output().expect(HELP);
    let complaint = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{HELP}: {complaint} (signal {:?})", output.status.signal());

    let mut wrong = Vec::new();
    for (index, block) in run.iter().enumerate() {
        let read = |name: &str| fs::read_to_string(of(index).join(name)).unwrap_or_default();
        let status = read("status").trim().parse();
        if status.as_ref().ok() != block.expected.as_ref().ok() {
            let Block { place, text, expected, .. } = block;
            wrong.push(format!("{place}: {status:?} in place of {expected:?}\n{text}---\n{}", read("output")));
        }
    }
    assert!(wrong.is_empty(), "{}\n{complaint}", wrong.join("\n\n"));
    for block in &left_out {
        eprintln!("not run: {}: {}", block.place, block.expected.as_ref().unwrap_err());
    }
    assert!(run.len() > left_out.len(), "{} run, {} not", run.len(), left_out.len());
}
