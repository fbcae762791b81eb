use super::{Identities, RULES};
use crate::{
    CleanOptions, Cleaner,
    keywords::{Keywords, Owner},
};
use knowledgepulse_json::parse_str;

const STRICT: CleanOptions = CleanOptions {
    identifiers: true,
    strict: true,
};

/// Cleans a JSON value as a session by itself.
fn cleaned(session: &str) -> String {
    let value = parse_str(session).unwrap();
    Cleaner::new(STRICT).clean_trace(&value).unwrap().to_json()
}

/// Cleans texts as one session.
fn cleaned_text(learned: &str, text: &str) -> String {
    let mut identities = Identities::default();
    identities.learn_text(learned);
    let mut cleaner = Cleaner::new(STRICT);
    cleaner.set_identities(identities);
    let units: Vec<u16> = text.encode_utf16().collect();
    let clean = cleaner.clean_text(&units).unwrap_or(units);
    String::from_utf16(&clean).unwrap()
}

#[test]
fn the_expressions_of_all_rules_are_well_formed() {
    assert!(RULES.rows.iter().all(|rule| rule.expression.captures_len() > 1));
}

/// A keyword that programs have everywhere costs more than what its rule finds.
#[test]
fn a_rule_is_tried_seldom_in_programs_and_searches_around_its_keyword_more_seldom() {
    let program = [include_str!("../cleaner.rs"), include_str!("../names.rs")].concat();
    let mut tries = vec![0; RULES.rows.len()];
    let keywords = Keywords::of(program.as_bytes(), program.to_ascii_lowercase().as_bytes());
    for keyword in keywords.of_owner(Owner::Identity) {
        let rules = RULES.of_keyword(keyword.number);
        rules.for_each(|(at, _)| tries[at] += 1);
    }
    for (rule, tries) in RULES.rows.iter().zip(tries) {
        let most = if rule.anchor.is_some() { 40 } else { 500 };
        let pattern = rule.expression.as_str();
        assert!(tries <= program.len() / most, "{tries} tries of {pattern}");
    }
}

#[test]
fn learn_text_finds_people_in_columns_behind_labels_and_below_greetings() {
    for text in [
        "| Kunde | Ort |\n|---|---|\n| Svenja Brockhaus | Kiel |",
        "id,contact,city\n7,Svenja Brockhaus,Kiel\n",
        " id |    full_name     | active\n----+------------------+------\n  1 | Svenja Brockhaus | t",
        "emp_no,first_name,last_name\n10,Svenja,Brockhaus\n",
        "INSERT INTO patients (id, `surname`, forename) VALUES\n(91, 'Brockhaus', 'Svenja');",
        "| Name | Role |\n|---|---|\n| Svenja Brockhaus | CTO |",
        "Customer: Svenja Brockhaus\nOrder: 12",
        "Bill to:\nSvenja Brockhaus\n12 High Street",
        "Mit freundlichen Grüßen,\nSvenja Brockhaus",
        r#"{"contact":{"name":"Svenja Brockhaus","phone":"1"}}"#,
        "Uppdragsledare: Svenja Brockhaus\n",
        "approved-by = 'Svenja K. Brockhaus'",
        "I spoke with Svenja Brockhaus from finance.",
        "Svenja Brockhaus: Good morning",
        "<td>Svenja van der Brockhaus</td>",
        "alt=\"Dr. Svenja Brockhaus\"",
        "to svenja.brockhaus@corp.example",
    ] {
        let clean = cleaned_text(text, &format!("{text}\nask Brockhaus"));
        assert!(
            clean.contains("user-1") && !clean.contains("Brockhaus"),
            "{clean}"
        );
    }
    for text in [
        "| Name | Use |\n|---|---|\n| Visual Studio | CTO |\n| read_file | reads |",
        "| Name | Version |\n|---|---|\n| Visual Studio | 2022 |",
        "Client: Redis\nname,value\nalpha,1",
        "use loom::{Poison, RwLock}; f(Brockhaus, Svenja)",
        "title: \"Brockhaus Svenjason\"",
    ] {
        assert_eq!(cleaned_text(text, text), text);
    }
}

#[test]
fn a_name_is_found_without_its_accents_and_with_them_as_letters_of_their_own() {
    let learned = "author: Jose\u{301} Iba\u{301}n\u{303}ez <x@y.zz>\nAuthor: José Ibáñez <x@y.zz>";
    for text in ["José Ibáñez", "Jose Ibanez", "Iba\u{301}n\u{303}ez", "IBÁÑEZ"] {
        assert_eq!(cleaned_text(learned, text), "user-1", "{text}");
    }
}

#[test]
fn learn_text_finds_the_name_in_each_place_that_names_somebody() {
    for place in [
        "/home/jdoe/project",
        "see /Users/jdoe/x",
        r"C:\Users\jdoe\project",
        r"c:\\Users\\jdoe\\project",
        r"\/home\/jdoe\/project",
        "/mnt/c/Users/jdoe/x",
        "/export/home/jdoe/x",
        "file:///home/jdoe/x",
        "%2FUsers%2Fjdoe%2Fx",
        "ls ~/.claude/projects/-Users-jdoe-project/1.jsonl",
        "projects/C--Users-jdoe-project",
        "/mnt/efs/jdoe/.ssh/config",
        "cat /nfs/team/jdoe/.bashrc",
        "jdoe@laptop7:~$ ls",
        "(base) jdoe@laptop7:/srv$ ls",
        "[jdoe@laptop7 project]$ ls",
        "jdoe@Johns-MacBook-Pro project % ls",
        "jdoe@laptop7 ~/project> ls",
        "\u{1b}[01;32mjdoe@laptop7\u{1b}[00m:\u{1b}[01;34m~/x\u{1b}[00m$ ls",
        "ssh -i key jdoe@build7.corp.example",
        "scp x jdoe@build7:/srv",
        "ask @jdoe:matrix.example",
        "user = \"jdoe\"",
        "<User>jdoe</User>",
        "level=info user=jdoe status=200",
        "connection authorized: user=jdoe database=ledger",
        "Svenja Brockhaus (@jdoe)",
        "Session 5 of user jdoe.",
        "Triggered by jdoe via push",
        "//nas/h on /m type cifs (rw,username=jdoe,uid=1000)",
        "100.64.0.7    pixel7          jdoe@ android -",
        "Telegram: @jdoe",
        "10.0.0.9 - jdoe [28/Nov/2026:08:01:12 +0100] \"GET /\"",
        "$ groups\njdoe adm sudo",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPabcdefgh jdoe@laptop7",
        "uid=1000(jdoe) gid=1000(jdoe) groups=1000(jdoe),27(sudo)",
        "-rw-r--r--  1 jdoe staff  120 Jan  1 10:00 a.txt",
        "-rw-r--r-- jdoe/users 12 2026-09-30 a",
        r#"{"login":"jdoe","id":1}"#,
        r#"{\"username\": \"jdoe\"}"#,
        "  Logged in to github.com account jdoe (keyring)",
        "Hi jdoe! You've successfully authenticated, but",
        "$ npm whoami\njdoe\n",
        "$ gh api user --jq .login\njdoe",
        "Username: jdoe\nRegistry: x",
        r#""Arn": "arn:aws:iam::210987654321:user/jdoe""#,
        "author:\tjdoe\nlabels:\t",
        "/src/ @jdoe\n",
        "https://git.example/jdoe/parser/pull/3",
        "To github.com\nTo https://git.example/jdoe/parser.git\n",
        "jdoe    4242  0.0  0.1  12345  6789 pts/0    Ss   10:01   0:00 -bash",
        "jdoe     4242       1  0 09:12 pts/0    00:00:00 -bash",
        "jdoe  pts/0   2026-11-28 09:12 (x)",
        "jdoe:x:1001:1001:J D,,,:/srv/x:/bin/zsh",
        "Nov 28 10:01:22 build7 sshd[812]: Accepted publickey for jdoe from 1",
        "$ lsof\nCOMMAND   PID    USER   FD   TYPE\nnode    81234 jdoe   21u  IPv4\n",
        "JOBID PARTITION     NAME     USER ST\n  812       gpu    train  jdoe  R\n",
        "jdoe opened this issue 3 days ago",
        "Merge pull request #3 from jdoe/fix",
        "docker push ghcr.io/jdoe/app:1",
        "You have mail in /var/mail/jdoe",
        "sudo useradd -m -s /bin/bash jdoe",
        "jdoe ALL=(ALL) NOPASSWD: ALL",
        "28.11.26, 09:12 - Jane Jdoe: hi",
        "Jane Jdoe  9:12 AM\nhello",
        "__author__ = \"Jane Jdoe\"",
        "Dear Ms. Jdoe,\n",
        "contact:\n  name: Jane Jdoe\n",
        "Hi, my name is Jane Jdoe and",
        "CN=Jane Jdoe,OU=Staff,DC=corp",
        "Nov 28 09:12:01 ws7 CRON[812]: (jdoe) CMD (x)",
        "$ git log --format=\"%h %an\"\n1a2b3c4 Jane Jdoe\n",
        "[sudo] password for jdoe: ",
        "User Name        SID\n================ ====\nws-1\\jdoe S-1-5-21-123456789-123456789-1001\n",
        "Author:        WS7-PC\\jdoe\n",
        "/home/CORP/jdoe/x",
        "file://localhost/Users/jdoe/x",
        "Macs-MBP:proj jdoe$ ls",
        "*.ts @jdoe @corp/core\n",
        "https://x-my.sharepoint.com/personal/jdoe/Documents",
        "https://www.linkedin.com/in/jdoe/",
        "https://people.example.edu/~jdoe/",
        "https://social.example/@jdoe",
        "<id>jdoe</id><name>x</name>",
        "debug1: Authenticating to build9:22 as 'jdoe'",
        "debug1: Offering public key: jdoe@build9 ED25519",
        "curl -v -u jdoe https://x.example",
        "{\"user\":\"jdoe\"}",
        "{\"name\": \"@jdoe/shop\"}",
        "https://pypi.org/user/jdoe/",
        "# owner: jdoe\n# group: staff",
        "Disk quotas for user jdoe (uid 1001):",
        "Change 42 on 2026/11/28 by jdoe@ws7 *pending*",
        "vscode-remote://ssh-remote%2Bjdoe%40nas2/x",
        "C:\\Documents and Settings\\jdoe\\x",
        "\\Device\\HarddiskVolume3\\Users\\jdoe\\x",
        "//nas1/home/jdoe/x",
        " Schema | Name |  Owner\n--------+------+-------\n public | t    | jdoe",
        "$ vercel whoami\nVercel CLI 39.0\njdoe\n",
        "sudo chown -R jdoe:staff /srv",
        "docker login -u jdoe --password-stdin",
        "GITHUB_ACTOR=jdoe\n",
        "Co-authored-by: x <88123+jdoe@users.noreply.github.com>",
        r"\\fs01\profiles$\jdoe\x",
        "jdoe <jdoe@corp.example>",
        "Uid: ( 1000/    jdoe)   Gid: ( 1000/ docker)",
        ".rw-r--r-- 1.2k jdoe 30 Sep 10:00 a",
        "-rw-r--r-- 1 root jdoe 1 Sep 30 10:00 a",
        "drwxr-xr-x@ 5 jdoe  staff   160 Jan  1 10:00 src",
        "SHELL=/bin/bash\nUSER=jdoe\nLANG=C",
        "export LOGNAME=jdoe",
        "HOME=/data/team/jdoe\n",
        "USERNAME=jdoe\r\n",
        "commit 1a2b\nAuthor: Jane Doe <jdoe@corp.example>\nDate: x",
        "Author: jdoe <12345+jdoe@users.noreply.github.com>",
        r"x\nAuthor: J D <jdoe@corp.example>\n",
        "Signed-off-by: Jane Doe <jdoe@corp.example>",
        "author Jane Doe <jdoe@corp.example> 1690000000 +0200",
        "user.name=Jane Doe\nuser.email=jdoe@corp.example",
        "git config user.email \"jdoe@corp.example\"",
        "[user]\n\tname = Jane Doe\n\temail = jdoe@corp.example\n",
        "origin\tgit@github.com:jdoe/parser.git (fetch)",
        "origin  https://gitlab.example/jdoe/parser (push)",
        "[remote \"origin\"]\n\turl = https://github.com/jdoe/parser.git",
        "git remote add origin git@github.com:jdoe/parser.git",
        "On branch jdoe/fix-parser",
        "git checkout -b jdoe/fix-parser",
        "Working directory: /data/jdoe/parser",
        "Primary working directory: /mnt/efs/jdoe/parser",
        "<cwd>/scratch/jdoe/parser</cwd>",
        "cd /mnt/efs/jdoe/parser && ls",
        r#"{"cmd":"ls","workdir":"/data/jdoe/parser"}"#,
        "$ whoami\njdoe\n",
        "bash-5.2# id -un\njdoe",
        "❯ whoami\njdoe\n",
        "wheel:x:10:jdoe\n",
        "10:14 <jdoe> hi",
        "Username for 'https://git.corp.example': jdoe\n",
        "| jdoe@localhost | jdoe@% |",
        "C:\\>whoami\nCORP\\jdoe\n",
        "- Jane Doe ([@jdoe](https://github.com/jdoe))",
        "db1 ansible_host=10.0.0.7 ansible_user=jdoe\n",
        "os.environ[\"KAGGLE_USERNAME\"] = \"jdoe\"",
        "unable to access 'https://jdoe:***@github.com/acme/parser.git/'",
        "home-manager.users.jdoe = {",
        "ERROR: Permission to acme/parser.git denied to jdoe.",
        "LABEL maintainer=\"jdoe\"",
        "jdoe@sw-1> show version",
        " * @author jdoe\n",
        "user:        jdoe\ndate: x",
        "%ASA-5-111010: User 'jdoe', running 'CLI'",
        "User \"jdoe\" logged in",
        "22:51:57 proftpd: USER jdoe: Login successful",
        "WEBOPT_LOGIN_FAIL(l): jdoe failed to log in from 10.0.0.9",
        "Username     : jdoe           Index        : 1018",
        "sAMAccountName: jdoe\n",
        "imap-login: user=<jdoe>, method=PLAIN",
        "09:26:29 SSLVPN LOGOUT: User jdoe - Client",
        "Login succeeded for user 'CORP\\jdoe'.",
        "SCRAM-SHA-1 authentication failed for jdoe on db",
        "Failed login for jdoe\n",
        "Authentication failure for 'jdoe' from x",
        "access for jdoe from 10.0.0.9",
        "Post by jdoe on 2021-08-12",
        "jdoe (x@corp.example) has joined #x",
        "INSERT INTO customers VALUES (1, 'jdoe', 7)",
        "* @jdoe @acme/core @acme\n",
        "approvers:\n- jdoe\n- acme\n",
        "* Mend x by @jdoe in https://github.com/acme/x/pull/3",
        "jdoe@krypton7: Permission denied (publickey).",
        "jdoe is not in the sudoers file.",
        "jdoe@krypton7 \n---------------\nOS: x",
        "smb-share:server=nas7x,share=x,user=jdoe/y",
        "/nix/var/nix/profiles/per-user/jdoe/x",
        "vscode-remote://wsl%2Bubuntu/home/jdoe/x",
        "C:\\x KRYPTON7\\jdoe:(I)(F)",
        "wandb: Currently logged in as: jdoe (acme) to x",
        "\u{2022} jdoe (Role: Admin)",
        "Unix username:        jdoe\n",
        "orgs:  jdoe,acme\n",
        "https://jdoe.atlassian.net/browse/X-1",
        "user jdoe\nhostname x.example\n",
        "jdoe:$6$abc$defghijklmno:19000:0:99999:7:::",
        "C:\\DOCUME~1\\jdoe\\LOCALS~1\\Temp",
        "vscode-remote://tunnel%2Bws7xy/home/jdoe/x",
        "$ podman login --get-login quay.example\njdoe\n",
        "$ gcloud config get account\njdoe\n",
        "$ git config --get github.user\njdoe\n",
        "$ ps -o user= -p 812\njdoe\n",
        "//jdoe@nas7x/photos on /Volumes/photos (smbfs, nodev)",
        "mount_smbfs //CORP;jdoe@nas7x/photos /mnt/x",
        "open smb://jdoe:x@nas7x/photos",
        "/dev/disk4s1 on /Volumes/x (apfs, local, mounted by jdoe)",
        "HTTPS_PROXY=http://jdoe%40corp.example:x@proxy:3128",
        "git clone https://jdoe%40corp.example@dev.example/x",
        "java.io = x\nuser.home = /export/home/jdoe\n",
        "homeDirectory: /nfs/home/jdoe\n",
        "NFSHomeDirectory: /Users/jdoe\n",
        "office-42   jdoe      12288   Fri 27 Nov 2026 09:12:11",
        "1st     jdoe   42      report.pdf       12288 bytes",
        r"\\?\UNC\nas7x\users\jdoe\Desktop",
        "Macintosh HD:Users:jdoe:Desktop",
        "~/.wine/drive_c/users/jdoe/Temp",
        "/nethome/jdoe/x /home2/jdoe/y",
        "/mnt/nas/home/jdoe/x",
        "/volume1/homes/jdoe/Drive",
        "/scratch/users/jdoe/run",
        "D:\\Benutzer\\jdoe\\x",
        "wsl.exe -d Ubuntu -u jdoe -- ls",
        "/tmp/pytest-of-jdoe/pytest-1",
        "crane auth login -u jdoe",
        "x create --docker-username=jdoe --docker-email=x",
        "credential.https://git.example.username=jdoe",
        "From git@git.example:jdoe/parser\n * [new branch]",
        "Merge branch 'x' of https://git.example/jdoe/parser into main",
        "unable to access 'https://git.example/jdoe/parser/': x",
        "Merge remote-tracking branch 'jdoe/fix'",
        "gh pr checkout jdoe:fix",
        "Hi there, jdoe! You've successfully authenticated with x",
        "Hi jdoe, welcome to x.",
        "Username (jdoe): ",
        "Switched to account jdoe on x",
        "User jdoe (id 4412) successfully logged in.",
        "+ @jdoe/shop@1.0.0",
        "# Contributor: jdoe\n",
        "[0] A100 |  3000 / 81920 MB | jdoe(2990M)",
        "drwxr-xr-x   - jdoe supergroup 0 2026-11-28 10:00 /x",
        "jdoe P 01/02/2026 0 99999 7 -1",
        "user:jdoe:rwx\n",
        "bash(4242,jdoe)---vim",
        " jdoe | Superuser, Create role | {}",
        "ALTER TABLE t OWNER TO jdoe;",
        "CREATE USER 'jdoe'@'10.%' IDENTIFIED BY 'x';",
        "| assignee | status |\n| --- | --- |\n| jdoe | open |",
        "useradd[12]: new user: name=jdoe, UID=1",
        "usermod[1]: add 'jdoe' to group 'docker'",
        "login ok for jdoe from /10.0.0.9",
        "cc @jdoe",
        "assigned to @jdoe; see jdoe/shop!12",
        "Nov 28 10:02:11 x1 sudo[4411]:   jdoe : TTY=pts/0 ; PWD=/x",
        "file:///home/jdoe%20bergqvist/x.md",
        "/proc/cygdrive/c/Users/jdoe/x",
        "Failed to log in to git.example account jdoe (default)",
        "Existing credentials found for jdoe at registry.example",
        "unlocked login keyring for jdoe",
        "jdoe  4242   0.0  0.1 408628368   6789   ??  S    10:01AM   0:00.10 zsh",
        "root     sshd: jdoe [priv]",
        "session opened for user root by jdoe(uid=501)",
        "jdoe:*:501:20:J D:/x:/bin/zsh",
        "net use H: \\\\nas7x\\jdoe",
        "Opened by jdoe 3 days ago",
        "jdoe requested your review on #3",
        "git@git.example:jdoe/dotfiles.git",
        "https://git.example/jdoe/x/pull-requests/3",
        "jdoe@nas7x MINGW64 ~/x (main)",
        "jdoe on nas7x in ~/x",
        "\u{250c}\u{2500}\u{2500}(jdoe\u{327f}kali)-[~/x]",
        "[10:01:02] jdoe:~/x $ ls",
        "su: user jdoe does not exist",
        "id: 'jdoe': no such user",
        "chown: invalid user: 'jdoe:jdoe'",
        "sudo: jdoe: command not allowed",
        "Sorry, user jdoe is not allowed to execute '/bin/ls' as root on nas7x.",
        "passwd: password updated for jdoe\n",
        "Changing password for jdoe.",
        "Removing user jdoe from group docker",
        "psql -h db -U jdoe shop",
        "[profile jdoe]\nregion=x",
        "is owned by:\n\tLAPTOP-9K2/jdoe (S-1-5-21-1-2-3-1001)",
        "\"maintainers\": [{\"name\": \"jdoe\", \"email\": \"x@y.example\"}]",
        "npm notice Publishing to https://registry.example as jdoe",
        "jdoe:!:19000:0:99999:7:::",
        "jdoe s001 - 10:01 - w",
        "node      4242 jdoe   23u  IPv4 0x1 0t0 TCP *:3000 (LISTEN)",
        "nas7x login: jdoe\nPassword:",
        "/run/desktop/mnt/host/wsl/mounts/Ubuntu/home/jdoe/x",
        "zed://file/Users/jdoe/x",
        "~/.vim/undo/%home%jdoe%a.c",
        r"\\nas7x\redirected$\jdoe\Documents",
        "Disconnected from user jdoe 10.0.0.9 port 22",
        "\tAccount Name:\t\tjdoe\n",
        "memberUid: jdoe\n",
        "runuser -u jdoe -- ls",
        "sudo -iu jdoe",
        "login -pf jdoe",
        "Reviewed-by: @jdoe\n",
        "Hello jdoe, welcome back",
        "Welcome to HCP Terraform, jdoe!",
        "Switched active account for git.example to jdoe\n",
        "docker build -t registry.corp.example/jdoe/shop:1 .",
        "$ gem owner x\nOwners for gem: x\n- jdoe\n",
        "$ aws iam get-user --query User.UserName\njdoe\n",
        r"\x2Fhome\x2Fjdoe\x2Fx",
        "$ glab api user | jq -r .username\njdoe\n",
        "$ printenv LOGNAME\njdoe\n",
        "$ ruby -e 'puts ENV[\"USER\"]'\njdoe\n",
        "$ getent passwd 1000 | cut -d: -f1\njdoe\n",
        "331 Password required for jdoe\n",
        "Triggered by user jdoe\n",
        "jdoe authored 2 hours ago",
        "IAM user jdoe is not authorized",
        "Accepted keyboard-interactive/pam for jdoe from ::1",
        "principal: jdoe\n",
        "net user jdoe /add",
        "setfacl -m u:jdoe:rwx x",
        "LastLoggedOnUser    REG_SZ    .\\jdoe\r\n",
        "/exports/users/jdoe/x",
        "%252Fhome%252Fjdoe%252Fx",
    ] {
        let found = cleaned_text(place, "ask jdoe, JDOE or jdoe_2 (jdoe's) [jdoe]");
        assert!(
            found == "ask user-1, user-1 or user-1_2 (user-1's) [user-1]",
            "{place}: {found}"
        );
    }
}

#[test]
fn learn_text_finds_the_name_of_a_person_beside_an_address_or_a_word_for_names() {
    for place in [
        "Malin Bergqvist,malin@corp.example",
        "authors = [\"Malin Bergqvist <mb@corp.example>\"]",
        "author Malin Bergqvist\nauthor-mail <x@corp.example>",
        "To: \"Malin de Bergqvist\" <mdw@corp.example>",
        "| Malin Bergqvist | mb@corp.example |",
        "write to Malin Bergqvist (malin.b@corp.example)",
        "Thanks,\nMalin Bergqvist\nHead of Data\nbergqvist@corp.example",
        r#"{"displayName":"Malin Bergqvist"}"#,
        r#"{"name":"Malin Bergqvist","id":7,"email":"x@corp.example"}"#,
        "[{\"mail\":\"mb7@corp.example\",\"url\":\"x\",\"name\":\"Malin Bergqvist\"}]",
        "Full Name                    Malin Bergqvist\n",
        "uid:f::::::::Malin Bergqvist <x7@corp.example>:",
        "   214\tMalin Bergqvist\n",
        "3fa9c1e - Malin Bergqvist, 3 days ago : x",
        "author = 'Malin Bergqvist',",
        "Copyright (c) 2025 Malin Bergqvist.",
        "/Volumes/Malin Bergqvist/a.zip",
        "Reported by Malin Bergqvist on Monday",
        "<dc:creator>Malin Bergqvist</dc:creator>",
        "Artist                          : Malin Bergqvist",
        "Authority=Developer ID Application: Malin Bergqvist (AB12CD34EF)",
        "\"created_by\":{\"name\":\"Malin Bergqvist\"}",
        "\"assignee\":{\"gid\":\"1\",\"name\":\"Malin Bergqvist\"}",
        "[28/11/2026, 10:01:22] Malin Bergqvist: hej",
        "[10:01] Malin Bergqvist\nhej",
        "authors = [\n  {name = \"Malin Bergqvist\"},\n]",
        "Thanks to Malin Bergqvist for x",
        "$ git log --pretty=format:\"%h %an %ar\"\n1a2b3c4 Malin Bergqvist 2 days ago",
        "mb:x:1001:1001:Malin Bergqvist,,,:/srv/x:/bin/zsh",
    ] {
        let found = cleaned_text(place, "ask Malin or Bergqvist");
        assert_eq!(found, "ask user-1 or user-1", "{place}");
    }
}

#[test]
fn learn_text_finds_names_beside_their_labels_in_any_notation() {
    for place in [
        "a:2:{s:9:\"firstname\";s:5:\"Malin\";s:8:\"lastname\";s:9:\"Bergqvist\";}",
        "[\"first_name\"]=>\n  string(5) \"Malin\"\n  [\"last_name\"]=>\n  string(9) \"Bergqvist\"",
        "    [first_name] => Malin\n    [last_name] => Bergqvist\n",
        r#"{"firstname": {"value": "Malin"}, "lastname": {"value": "Bergqvist"}}"#,
        r#"[{"name": "firstName", "value": "Malin"}, {"name": "lastName", "value": "Bergqvist"}]"#,
        "name=\"first_name\"\r\n\r\nMalin\r\n--x\r\nname=\"last_name\"\r\n\r\nBergqvist\r\n",
        "<family value=\"Bergqvist\"/><given value=\"Malin\"/>",
        "{ID:7 FirstName:Malin LastName:Bergqvist Active:true}",
        "fill('input[name=\"firstName\"]', 'Malin'); fill('input[name=\"lastName\"]', 'Bergqvist')",
        "|givenName|familyName|city|\n|Malin|Bergqvist|Lund|",
        "PID|1||7^^^H1||Bergqvist^Malin^^^Frau||",
        "NM1*IL*1*BERGQVIST*MALIN****MI*7~",
        "N:Bergqvist;Malin;;Dr.;\n",
        "person(\"Malin\", \"Bergqvist\", role = \"aut\")",
        "1 NAME Malin /Bergqvist/",
        "[Malin Bergqvist](https://github.com/mb7)",
        "- **Malin Bergqvist** – Product Owner",
        "00:04:12 Malin Bergqvist: hej",
        "$ git log --pretty='%h %an' -3\n3f2a9c1 Jane Roerich\n9be01c7 Tom Ulrich\n77a1c02 Malin Bergqvist",
        "git log --format='%h|%an|%ad'\n3f2a9c1|Jane Roerich|2 days ago\n9be01c7|Malin Bergqvist|3 days ago",
        "$ git log --format=\"%H,%an\"\r\n3f2a9c1000,Jane Roerich\r\n9be01c7000,Malin Bergqvist\r\n",
        "Bergqvist, Malin (3):\n      fix x",
        "On Mon, Nov 2, 2026 at 9:12 AM Bergqvist, Malin <x@y.example> wrote:",
        "* 1a2b3c4 - fix (3 hours ago) <Malin Bergqvist>",
        "{\"first\": \"MALIN\", \"last\": \"BERGQVIST\"}",
        "C:\\Documents and Settings\\Malin Bergqvist\\x",
        "C:\\Documents and Settings\\Malin Bergqvist",
        "D:\\Dokumente und Einstellungen\\Malin Bergqvist\\x",
        "file:///Users/Malin%20Bergqvist/x",
        "/Users/x/Bergq Dropbox/Malin Bergqvist/x",
        "/Volumes/x/Box-Box/Malin Bergqvist/x",
        "Welcome back, Malin Bergqvist!",
    ] {
        let found = cleaned_text(place, "ask Malin or Bergqvist");
        assert!(
            !found.contains("Malin") && !found.contains("Bergqvist"),
            "{place}: {found}"
        );
    }
}

#[test]
fn learn_text_finds_a_company_by_its_domain_and_its_name() {
    for (learned, text, expected) in [
        (
            "to malin@bergbygg.se",
            "intra.bergbygg.se/wiki",
            "intra.host-1.se/wiki",
        ),
        (
            "   Primary Dns Suffix  . . . : corp.bergbygg.se",
            "bergbygg",
            "host-1",
        ),
        (
            "\"tenantDefaultDomain\": \"bergbygg.onmicrosoft.com\"",
            "bergbygg",
            "host-1",
        ),
        (
            "\"tenantDisplayName\": \"Bergq Bygg AB\"",
            "Bergq Bygg AB",
            "user-1",
        ),
        (r"C:\Users\x\Dropbox (Bergq Bygg)\a", "Bergq Bygg", "user-1"),
        ("/Users/x/Bergq Bygg Dropbox/a", "Bergq Bygg", "user-1"),
        ("G:/Shared drives/Bergq Bygg/a", "Bergq Bygg", "user-1"),
        ("x@gmail.com bob@lists.python.org", "gmail python", "gmail python"),
    ] {
        assert_eq!(cleaned_text(learned, text), expected, "{learned}");
    }
}

#[test]
fn learn_text_finds_the_machine() {
    for place in [
        "jdoe@krypton7:~$ ls",
        "[jdoe@krypton7 x]$ ls",
        "Linux krypton7 5.15.0-91-generic #101 SMP",
        "Darwin krypton7.local 23.1.0 Darwin Kernel",
        "   Static hostname: krypton7",
        "HOSTNAME=krypton7\n",
        "$ hostname\nkrypton7\n",
        "root@krypton7:/app# ls",
        "Host Name:                 krypton7\n",
        "   Host Name . . . . . . . . : krypton7",
        "127.0.1.1 krypton7\n",
        "Nov 28 10:01:22 krypton7 kernel[1]: x",
        "$ cat /etc/hostname\nkrypton7\n",
        "Last login: Sat Nov 28 10:01:22 from krypton7",
        "client-hostname \"krypton7\";",
        "Nov 28 10:01:22 krypton7 su(pam_unix)[1]: x",
        "Mar 10 10:05:59 krypton7 gsad main[1]: x",
        "|   Computer name: krypton7\n",
        "Client host: krypton7\n",
        "sev=1\tidentHostName=krypton7\tx",
        "<MachineName>krypton7</MachineName>",
        "System:\n  Host: krypton7 Kernel: 6.1",
        " CPUs: 8\n Name: krypton7\n ID: x",
        "systemd[1]: Set hostname to <krypton7>.",
        "Current Operating System: Linux krypton7 6.12.9-amd64",
        "2026-01-05T10:00:00.123456+01:00 krypton7 sshd[12]: x",
        "DHCPACK on 10.0.0.7 to aa:bb:cc:dd:ee:ff (krypton7) via eth0",
        "1700000000 aa:bb:cc:dd:ee:ff 192.168.1.7 krypton7 x",
        "HostName:                             krypton7\n",
        "CsName                 : krypton7\n",
        "//krypton7/share on /mnt/x type cifs (rw)",
        "\tAccount Domain:\t\tKRYPTON7\n",
        "\tWorkstation Name:\tKRYPTON7",
        "    Device Name:\tkrypton7\n",
        "vscode-remote://ssh-remote%2Bkrypton7/srv/x",
        "code --remote ssh-remote+krypton7 /srv",
        "vscode-remote://tunnel%2Bkrypton7/srv",
        "System Name\tkrypton7\n",
        "\"hostname\":\"krypton7.local\",\"pid\":12",
        "The authenticity of host 'krypton7 (10.0.0.9)' can't be established.",
        "ssh: Could not resolve hostname krypton7: Name or service not known",
        "Connection to krypton7 closed by remote host.",
        "fatal: [krypton7]: UNREACHABLE! => {}",
        "PLAY RECAP\nkrypton7                  : ok=3    changed=1",
        "up{instance=\"krypton7:9100\",job=\"node\"} 1",
        "[0] 0:bash* \"krypton7\" 10:12 28-Nov-26",
        "net use Z: \\\\KRYPTON7\\public",
        "C:\\>whoami\nkrypton7\\jdoe\n",
        "krypton7:/volume1/data  10T  5T  5T  50% /mnt/data",
        "Successfully assigned default/app-1 to krypton7",
        "krypton7 | SUCCESS => {}",
        "    KRYPTON7       <00>  UNIQUE      Registered",
        "NetBIOS Name: KRYPTON7\nWorkgroup: WORKGROUP",
        "<30>Nov 30 10:00:01 krypton7 dhclient[1]: bound",
        "{\"_HOSTNAME\":\"krypton7\",\"_UID\":\"1000\"}",
        "Nov 28 10:01:22 krypton7 su: pam_unix(su:session): x",
        "smb://krypton7/docs",
        "dn: cn=x,ou=people,dc=krypton7\n",
        "session helper-NORDHAFEN\\\\KRYPTON7$-65864",
        "PSComputerName : KRYPTON7\n",
        "DNSHostName: krypton7\n",
        "<34>1 2026-11-29T14:00:00Z krypton7 sshd 812 - - x",
        "29 nov. 14:00:00 krypton7 app[2]: x",
        "scp a.tgz krypton7:/srv/",
        "ssh -p 22 krypton7 uptime",
        "MachineName: krypton7\n",
        "krypton7 login: \n",
        "Building remotely on krypton7 in workspace /w",
        "ssh://jdoe@krypton7",
        "Name:\tkrypton7\nAddress: 10.0.0.4",
    ] {
        assert_eq!(cleaned_text(place, "on krypton7."), "on host-1.", "{place}");
    }
}

#[test]
fn a_machine_in_a_domain_is_learned_where_a_connection_names_it() {
    for place in [
        "Host fj\n  HostName krypton7.bergbygg.example.se\n",
        "  ProxyJump jdoe@krypton7.bergbygg.example.se\n",
        "Match host krypton7.bergbygg.example.se user x",
        "debug1: Connecting to krypton7.bergbygg.example.se [10.0.0.9] port 22.",
        "Connected to krypton7.bergbygg.example.se.",
        "[web]\nkrypton7.bergbygg.example.se ansible_user=x",
        "server: https://krypton7.bergbygg.example.se:6443",
        "# krypton7.bergbygg.example.se:22 SSH-2.0-OpenSSH_9.6",
        "rsync -a x/ krypton7.bergbygg.example.se:/srv/x",
        "PING krypton7.bergbygg.example.se (10.0.0.9)",
        "remote host krypton7.bergbygg.example.se is up",
    ] {
        assert_eq!(cleaned_text(place, "on krypton7."), "on host-1.", "{place}");
    }
}

#[test]
fn learn_json_takes_what_fields_and_answers_say() {
    for session in [
        r#"[{"cwd":"/mnt/efs/jdoe/parser"},"jdoe"]"#,
        r#"[{"cwd":"/data/jdoe"},"jdoe"]"#,
        r#"[{"cwd":"/home/jdoe"},"jdoe"]"#,
        r#"[{"cwd":"mnt/x"},{"cwd":"/scratch/shared/jdoe"},"jdoe"]"#,
        r#"[{"cwd":"C:\\Users\\Ann Jdoe\\x"},"jdoe"]"#,
        r#"[{"cwd":"D:\\Users\\jdoe\\parser"},"jdoe"]"#,
        r#"[{"gitBranch":"jdoe/parser"},"jdoe"]"#,
        r#"[{"input":{"command":"whoami"}},{"content":"jdoe"},"jdoe"]"#,
        r#"[{"input":{"command":"cd x && whoami && hostname"}},{"id":"x1","content":[{"text":"jdoe\nbuild7"}]},"jdoe"]"#,
        r#"[{"arguments":"{\"command\":[\"bash\",\"-lc\",\"whoami; ls\"]}"},{"output":"{\"output\":\"jdoe\\na.txt\\n\",\"metadata\":{}}"},"jdoe"]"#,
        r#"[{"cmd":"ls && whoami"},{"stdout":"a\nb\njdoe\n"},"jdoe"]"#,
        r#"[{"cmd":"whoami"},{"content":"Chunk ID: 1\nOutput:\njdoe\n"},"jdoe"]"#,
        r#"[{"cmd":"whoami"},{"cmd":"hostname"},{"content":"jdoe"},{"content":"build7"},"jdoe"]"#,
        r#"[{"cmd":"vercel whoami"},{"content":"Vercel CLI 44.2.0\njdoe"},"jdoe"]"#,
        r#"[{"cmd":"ls /home"},{"content":"shared\njdoe\n"},"jdoe"]"#,
        r#"[{"cmd":"npm owner ls x"},{"content":"jdoe <x@corp.example>\nacme <y@corp.example>"},"jdoe"]"#,
        r#"[{"cmd":"net user"},{"content":"---\nGuest     jdoe     Other\n"},"jdoe"]"#,
        r#"[{"cmd":"git config user.email"},{"content":"jdoe@corp.example"},"jdoe"]"#,
        r#"[{"/home/jdoe/a.txt":1},"jdoe"]"#,
    ] {
        let found = cleaned(session);
        assert!(
            found.ends_with(r#""user-1"]"#) && !found.contains("jdoe"),
            "{session}: {found}"
        );
    }
}

#[test]
fn an_answer_in_words_is_not_what_a_command_has_printed() {
    for answer in [
        r"It stays as it was.\n\nRegards,\nXandu",
        r"The name of this machine is told below:\nXandu",
    ] {
        let session = format!(r#"[{{"cmd":"hostname"}},{{"content":"{answer}"}}]"#);
        assert_eq!(cleaned(&session), session);
    }
}

#[test]
fn names_are_replaced_in_all_texts_and_names_of_a_session() {
    let session = r#"{"cwd":"/Users/jane.doe/parser","title":"Jane.Doe's parser","files":{"/srv/jane.doe/x.rs":1},
        "log":"Author: Jane Doe <jane@corp.example>\n","who":"Jane DOE, jane_doe, janedoe, jdoe, DOE, JaneHelper, myJane\\njane",
        "slug":"-srv-jane-doe-parser","ansi":"\u001b[32mjane\u001b[0m","zh":"用jane的","path":"a%2Fjane%2Fb"}"#;
    assert_eq!(
        cleaned(session),
        concat!(
            r#"{"cwd":"/Users/user-1/parser","title":"user-1's parser","files":{"/srv/user-1/x.rs":1},"#,
            r#""log":"Author: user-1 <[REDACTED:email-1]>\n","#,
            r#""who":"user-1, user-1, user-1, user-1, user-1, user-1Helper, myuser-1\\nuser-1","#,
            r#""slug":"-srv-user-1-parser","ansi":"\u001b[32muser-1\u001b[0m","zh":"用user-1的","#,
            r#""path":"a%2Fuser-1%2Fb"}"#
        )
    );
}

#[test]
fn paths_keep_their_shape() {
    for (text, expected) in [
        (
            "/Users/maja/code/shop/src/a.py:77:5",
            "/Users/user-1/code/shop/src/a.py:77:5",
        ),
        (r"C:\Users\Maja L\x", r"C:\Users\user-1\x"),
        (r"C:\\Users\\Maja L\\x", r"C:\\Users\\user-1\\x"),
        (
            r"d:\users\maja\a.ts(3,1) D:/Users/maja/b.ts",
            r"d:\users\user-1\a.ts(3,1) D:/Users/user-1/b.ts",
        ),
        (r"\\wsl$\Ubuntu\home\maja\x", r"\\wsl$\Ubuntu\home\user-1\x"),
        (r"C:\Users\MAJALI~1\AppData", r"C:\Users\user-1\AppData"),
        (r"'C:\Users\Maja O'Lind\x'", r"'C:\Users\user-1\x'"),
        (r"C:\Users\m'lind\x", r"C:\Users\user-1\x"),
        ("/home/maja+dev/x", "/home/user-2/x"),
        ("/Users/maja lindt/Library/x", "/Users/user-1/Library/x"),
        ("'/home/Maja van Lindt/.config'", "'/home/user-1/.config'"),
        (r"/Users/maja\ lindt/x", r"/Users/user-1\ user-2/x"),
        (
            "diff /home/maja lib/x /Users/maja src/y",
            "diff /home/user-1 lib/x /Users/user-1 src/y",
        ),
        (
            "file:///C:/Users/maja/a.html %2FUsers%2Fmaja%2Fx",
            "file:///C:/Users/user-1/a.html %2FUsers%2Fuser-1%2Fx",
        ),
        ("\"/home/parsley\" parsley", "\"/home/user-1\" parsley"),
        ("/home/max/a.rs max(1)", "/home/user-1/a.rs max(1)"),
        ("/home/李明/x.txt", "/home/user-1/x.txt"),
        ("/home/%E6%9D%8E%E6%98%8E/x.txt", "/home/user-1/x.txt"),
        (r"/home/\346\235\216\346\230\216/x.txt", "/home/user-1/x.txt"),
        (r"/home/jos\u00e9/x.txt", "/home/user-2/x.txt"),
        ("/home/jos%C3%A9/x.txt", "/home/user-2/x.txt"),
        (
            "/opt/maja2/x /home/node/x '/home/settings'",
            "/opt/maja2/x /home/node/x '/home/settings'",
        ),
    ] {
        let clean = cleaned_text(text, text);
        assert_eq!(clean, expected);
        assert_eq!(cleaned_text(&clean, &clean), expected);
    }
}

#[test]
fn words_that_contain_a_name_stay() {
    assert_eq!(
        cleaned_text("whoami: /home/dana/x", "Danar, bandana, dana1x, [REDACTED:dana]"),
        "Danar, bandana, dana1x, [REDACTED:dana]"
    );
}

#[test]
fn common_words_are_replaced_only_where_their_surroundings_tell_the_name() {
    for (learned, text, expected) in [
        (
            "cwd: /data/max/x",
            "max(1, 2) in /data/max/x.py",
            "max(1, 2) in /data/user-1/x.py",
        ),
        (
            "cwd: /data/max/x",
            "projects/-data-max-x",
            "projects/-data-user-1-x",
        ),
        (
            "main@krypton7:~$ ",
            "fn main() on main@krypton7",
            "fn main() on user-1@host-1",
        ),
        (
            "Author: Max Young <max@corp.example>",
            "max(young) by Max Young",
            "max(young) by user-1",
        ),
        ("jd@krypton7:~$ ", "jd.json jd@krypton7", "jd.json user-1@host-1"),
        (
            "Connecting to build07.corp.example [10.2.3.4] port 22.",
            "Connecting to build07.corp.example [10.2.3.4] port 22.",
            "Connecting to host-1 [[REDACTED:ip-1]] port 22.",
        ),
        (
            "origin\tgit@github.com:payments/api2.git (fetch)",
            "payments github.com/payments/api2",
            "payments github.com/user-1/api2",
        ),
    ] {
        assert_eq!(cleaned_text(learned, text), expected, "{learned}");
    }
}

#[test]
fn nobody_is_learned_from_accounts_and_folders_of_everybody() {
    for text in [
        "/home/ubuntu/app /home/node /Users/runner /home/user/x /root/x",
        "root@localhost:~# ubuntu@ubuntu:~$",
        "cwd: /app/src\ncwd: /workspace/parser\ncwd: /testbed\ncwd: /work/parser",
        "cwd: /data/datasets/x\ncwd: /mnt/data",
        "uid=0(root) gid=0(root)",
        "-rw-r--r-- 1 root root 12 Jan 1 a",
        "Author: dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>",
        "Author: Claude <noreply@anthropic.com>",
        "Author: Devin AI <158243242+devin-ai-integration[bot]@users.noreply.github.com>",
        "Linux Mint 21.3 is based on\nhostname: gateway7\nLinux kernel 5.10.1 has",
        "Author: github-actions <github-actions@github.com>",
        "origin\thttps://github.com/django/django.git (fetch)",
        "On branch feature/parser\nOn branch main",
        "git config user.name \"Test User\" && git config user.email test@example.com",
        "$ whoami\nroot\n$ hostname\nlocalhost\n",
        "USER=app\nHOME=/root\n",
        "git@github.com:/x git@github.com:acme/x",
        "https://example.com/home/settings2 navigate('/api/users/list2')",
        "origin\thttps://github.com/pallets/flask.git (fetch)",
        "uid=65532(nonroot) /home/daytona/x user-1@host-1:~$ /home/user-1/x",
        "git user.name not configured; all user role entries; Claude continues",
        "The tests fail after the user.email and user.name configurations.",
        " * @param name the User continues",
        "os.WriteFile, \"test@test.com\"",
        "TODO(ENT-221): x",
        "'member_name' => 'string', /Users/foo/x",
        " * @license MIT\n * @template T\n",
        "type Role = \"user\" | \"robotnik\"; kind === 'user' ? 'user' : 'robotnik'",
        "user.click(screen.getByRole(\"slidertop\"",
        "let username = username_from_cli;",
        "\"owner\": \"c3a894e8-1b2c-4d3e-8f90-a1b2c3d4e5f6\"",
        "hostname = parsed(url)\n:param str hostname: Hostname to examine.",
        "Operator:      cyan,\nUser Name        SID\n",
        "12:00:01 INFO user created for requests from 127.0.0.1",
        "run(actor=request.actor, owner=root_actor)\nfunc Ready() error {",
        "# The hugo guide\nHugo Shortcodes are files that hugo reads.",
        "// Copyright 2021 The Go Authors\n// Copyright (C) 2012 Free Software Foundation, Inc.",
        "# Copyright (c) 2024 Nordic Semiconductor ASA\n# Copyright (c) 2017 Linaro Limited\n",
        "address: San Francisco\nDo not run passwd to set it; signed in as that actor",
        "/Volumes/Macintosh HD/x; Olá, Mundo!\nHei, Verden!",
        "Connection to database lost; Could not resolve host: registry.npmjs.org",
        "see https://acme.atlassian.net/wiki/spaces/ENG/pages/4",
        "    @classmethod\n@fontSizeH1: 50px;\nuse the @property2 decorator(x)",
        "add 'as_usize' to x; pow(256,e-r-1); the user said so; x.svg?org=tinylibs",
        "\"owner\": \"silversquirl\",\n  \"ref\": \"main\",\n  \"repo\": \"ini\",\n  \"type\": \"github\"",
        "BUILTIN\\Administrators:(F)\nNT AUTHORITY\\SYSTEM:(OI)(F)",
        "http://minio-1.minio.default.svc.cluster.local/data",
        "placeholderImage:[UIImage imageNamed:x]; label: 'Brazilian Portuguese'",
        "\t\tAuthor:       sig,\n\t\tEmail: x; docker build -t staging-k8s.gcr.io/explorer:1",
        "owner: repositoryOwner,\n- uid: az_load_test_file_delete\n\"preferred_username\": \"Tên tài khoản\"",
        "Connected to oauth2.googleapis.com; ssh v2; look in /usr/Visual Studio/x",
    ] {
        let mut identities = Identities::default();
        identities.learn_text(text);
        assert!(identities.patterns.is_empty(), "{text}: {:?}", identities.names);
    }
}

#[test]
fn names_beyond_ascii_are_replaced_in_any_case() {
    assert_eq!(
        cleaned_text(
            "Author: José Núñez <jn@corp.example>\n",
            "JOSÉ, josé, Joséphine, NÚÑEZ"
        ),
        "user-1, user-1, Joséphine, user-1"
    );
    assert_eq!(cleaned_text("/home/иван/x", "Иван и Иванов"), "user-1 и Иванов");
    assert_eq!(cleaned_text("/home/田中/x", "用田中的"), "用user-1的");
}

#[test]
fn a_clean_session_has_no_identities_left() {
    let done = r#"[{"content":"Bash\ncommand: hostname"},{"content":"host-1"},{"content":"Done.\n\nRegards,\nXandu"}]"#;
    assert_eq!(cleaned(done), done);
    let session = r#"["jdoe@krypton7:~$ whoami","Author: Jane Doe <jdoe@corp.example>","/home/jdoe/x"]"#;
    let once = cleaned(session);
    assert_eq!(cleaned(&once), once);
}

#[test]
fn the_levels_that_keep_identifiers_keep_names() {
    let private = CleanOptions {
        identifiers: false,
        ..STRICT
    };
    let value = parse_str(r#"["jdoe@krypton7:~$ ls"]"#).unwrap();
    let clean = Cleaner::new(private).clean_trace(&value).unwrap();
    assert_eq!(clean, value);
    let plain = CleanOptions {
        strict: false,
        ..STRICT
    };
    assert_eq!(Cleaner::new(plain).clean_trace(&value).unwrap(), value);
}

/// Whoever learns from many files before they are cleaned holds what was learned of each.
#[test]
fn a_text_that_was_read_is_kept_for_those_that_clean_at_once_alone() {
    let mut identities = Identities::default();
    identities.learn_text("whoami by maja");
    let mut finished = identities.clone();
    finished.finish();
    assert!(finished.take_page("whoami by maja").is_none());
    assert!(identities.take_page("whoami by maja").is_some());
}
