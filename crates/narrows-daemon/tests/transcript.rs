//! What a wrong command line is answered, word by word. Needs neither root nor BTF.

use std::process::Command;

fn narrowsd(line: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_narrowsd")).args(line.split(' ')).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn what_cannot_be_used_is_said_with_a_way_out() {
    let lines = [
        "cc load gemni",
        "cc load cubic",
        "cc load gemini --set capacty=10Gbps",
        "cc load gemini --set t",
        "cc load gemini --set t=5",
        "cc load gemini --set t=20s",
        "cc load gemini --set gate=sq",
        "cc load gemini --set ecn=1",
        "cc load newreno --set t=5ms",
        "cc load gemini --fallback no_such_name",
        "cc set gemini beta=fast",
        "cc status gemnii",
        "cc unload gemnii",
    ];
    let mut said = String::new();
    for line in lines {
        let (code, out, error) = narrowsd(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {error}");
        said += &format!("$ narrowsd {line}\n{error}");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_namespace_that_is_not_there_is_said() {
    let (code, _, error) = narrowsd("cc set gemini t=5ms --netns no-such-namespace");
    assert_eq!(code, 2);
    assert!(error.starts_with("error: unknown network namespace `no-such-namespace`\n"), "{error}");
}

#[test]
fn a_wrong_command_line_ends_with_code_2() {
    for line in
        ["cc", "cc unload", "cc unload gemini --all", "cc set gemini", "cc set gemini --clear", "cc status --flows"]
    {
        let (code, _, error) = narrowsd(line);
        assert_eq!(code, 2, "{line}: {error}");
    }
}

#[test]
fn the_list_names_every_controller_and_its_parameters() {
    let (code, out, _) = narrowsd("cc list --json");
    assert_eq!(code, 0);
    let all: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(
        all.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["dctcp", "gemini", "newreno", "vegas"]
    );
    let t = &all[1]["parameters"][2];
    assert_eq!((t["name"].as_str(), t["default"].as_str()), (Some("t"), Some("5ms")));
    assert_eq!(t["range"], serde_json::json!(["0s", "10s"]));
    let (code, out, _) = narrowsd("cc list vegas");
    assert_eq!(code, 0);
    assert!(
        out.starts_with("vegas (Vegas), registered as narrows_vegas: does not use ECN,")
            && out.contains("\n  alpha=2pkt  "),
        "{out}"
    );
}
