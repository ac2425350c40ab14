//! A private member of a group of MySQL servers, each of which takes writes: MySQL Group Replication with several
//! primaries.

use std::path::Path;

use crate::mysql::MySql;
use crate::process::{Launch, write};
use crate::server::{Identity, Recipe, logged};

/// All groups have this name. Those of two tests share no port, so they do not meet.
const NAME: &str = "0bd1d000-0000-4000-8000-000000000000";

/// The binaries of MySQL, and the place of a member in its group.
pub(crate) struct GroupReplication {
    mysql: MySql,
    /// The number of this member. The first one begins the group.
    member: usize,
    /// Where each member talks to the others.
    addresses: Vec<String>,
}

impl GroupReplication {
    /// Takes a member's place in a group whose members talk to each other at these ports.
    pub(crate) fn member(mysql: MySql, member: usize, group: &[u16]) -> Self {
        let address = |port| format!("127.0.0.1:{port}");
        Self {
            mysql,
            member,
            addresses: group.iter().map(address).collect(),
        }
    }
}

impl Recipe for GroupReplication {
    const IDENTITY: Identity = Identity {
        name: "group_replication",
        ..MySql::IDENTITY
    };
    const URL: &'static str = MySql::URL;

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let mut launch = self.mysql.launch(folder, port);
        // Who gives a member what it has missed is asked as this user, which has no password.
        let recovers = format!("{folder}/recovers.sql");
        let sql = "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery';";
        let lines = vec![sql.to_owned()];
        launch.prepare.push(write(recovers.clone(), lines));
        launch.serve.extend([
            // The later option counts: a group is made of the log.
            format!("--log-bin={folder}/binlog"),
            format!("--server-id={}", self.member + 1),
            "--gtid-mode=ON".to_owned(),
            "--enforce-gtid-consistency=ON".to_owned(),
            "--report-host=127.0.0.1".to_owned(),
            format!("--init-file={recovers}"),
            "--plugin-load-add=group_replication.so".to_owned(),
            "--group-replication-start-on-boot=ON".to_owned(),
            format!("--group-replication-group-name={NAME}"),
            format!(
                "--group-replication-local-address={}",
                self.addresses[self.member]
            ),
            format!(
                "--group-replication-group-seeds={}",
                self.addresses.join(",")
            ),
            "--group-replication-single-primary-mode=OFF".to_owned(),
            // A member that is silent is suspected after five seconds. It is not waited for any longer.
            "--group-replication-member-expel-timeout=0".to_owned(),
            // A member that was expelled keeps the connections of its clients, as it did by default until MySQL 9.
            "--group-replication-exit-state-action=READ_ONLY".to_owned(),
        ]);
        if self.member == 0 {
            launch.begin_with(folder, "--group-replication-bootstrap-group=ON");
        }
        launch
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // It takes statements once it has what the others have.
        self.mysql.ready(folder, port)
            && logged(
                folder,
                "This server was declared online within the replication group",
            )
    }
}
