//! A private node of a Galera cluster: MariaDB with a provider that has each COMMIT agreed on by all nodes.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;
use crate::mariadb::MariaDb;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, logged};

/// Debian's place of the provider.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// Where a node talks to the others: the group, the copy of all data, and the changes since.
pub(crate) type Ports = [u16; 3];

/// The binaries of MariaDB, and the place of a node in its cluster.
pub(crate) struct Galera {
    mariadb: MariaDb,
    /// The number of this node. The first one begins the cluster.
    node: usize,
}

impl Galera {
    /// Finds the provider, the installed MariaDB that it is made for, and what copies the data to a node.
    pub(crate) fn find() -> Result<Found<MariaDb>, Error> {
        let found = MariaDb::installed()?;
        if !PathBuf::from(PROVIDER).is_file() || find::binary(&["rsync"]).is_none() {
            return Err(Error::missing(
                "libgalera_smm.so` with `rsync",
                "galera-4 rsync",
            ));
        }
        Ok(found)
    }

    /// Takes a node's place.
    pub(crate) fn node(mariadb: MariaDb, node: usize, cluster: &[Ports]) -> Self {
        let [group, copy, changes] = cluster[node];
        let members: Vec<String> = cluster
            .iter()
            .map(|[group, ..]| format!("127.0.0.1:{group}"))
            .collect();
        let options = [
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={PROVIDER}"),
            "--wsrep-cluster-name=ordid".to_owned(),
            format!("--wsrep-cluster-address=gcomm://{}", members.join(",")),
            "--wsrep-node-address=127.0.0.1".to_owned(),
            format!("--wsrep-node-name=node{node}"),
            "--wsrep-sst-method=rsync".to_owned(),
            format!("--wsrep-sst-receive-address=127.0.0.1:{copy}"),
            // A node that is gone is given up after a second, not after five.
            format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};base_port={group};\
                 ist.recv_addr=127.0.0.1:{changes};gcache.size=32M;evs.keepalive_period=PT0.3S;\
                 evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT1S;evs.inactive_timeout=PT3S;\
                 evs.install_timeout=PT2S"
            ),
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Self {
            mariadb: mariadb.with(&options),
            node,
        }
    }
}

impl Recipe for Galera {
    const IDENTITY: Identity = Identity::of("galera", "mysql", "galera-4");
    const URL: &'static str = MariaDb::URL;

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let mut launch = self.mariadb.launch(folder, port);
        if self.node == 0 {
            launch.begin_with(folder, "--wsrep-new-cluster");
        }
        launch
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // It takes statements once it has what the others have.
        self.mariadb.ready(folder, port) && logged(folder, "Synchronized with group")
    }
}
