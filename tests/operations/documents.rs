//! Every command in the documents is run, word for word, against a real server.
//!
//! What the commands of the documents take for granted (a service, a report) is in `tests/documents/scenery`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::documents::{Block, STOPPED, blocks, documents, root};

const HELP: &str = "the documents' commands need root, `apt-get install util-linux iproute2 curl`, and ZooKeeper's jar";

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
