//! The blocks of commands in the documents, and what each is to come to.
//!
//! A block of `sh` must end with status 0. A comment in the line before it says what else is to be expected:
//! `<!-- exit status N: why -->`, `<!-- runs until it is stopped -->`, or `<!-- not run here: why -->`.

use std::fs;
use std::path::{Path, PathBuf};

/// Of `timeout(1)`.
pub const STOPPED: i32 = 124;

/// One block of a document.
pub struct Block {
    /// The document and the line.
    pub place: String,
    /// Where it is run: an example's in its own folder.
    pub folder: PathBuf,
    pub text: String,
    /// `None`: it is not run, for this reason.
    pub expected: Result<i32, String>,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages at the root, and those below `docs` and `examples`.
pub fn documents() -> Vec<PathBuf> {
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

pub fn blocks(document: &Path) -> Vec<Block> {
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
pub fn block_with(document: &str, word: &str) -> String {
    let blocks = blocks(&root().join(document));
    let found: Vec<_> = blocks.into_iter().filter(|block| block.text.contains(word)).collect();
    assert_eq!(found.len(), 1, "blocks of {document} with {word}");
    found[0].text.clone()
}
