//! Connections to SQL Server and Oracle, by the addresses that the tests are given.

use std::sync::atomic::{AtomicU32, Ordering};

use ordid_tiberius::is_babelfish;
use tiberius::{Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

/// A connection to SQL Server or Babelfish.
pub type Tds = Client<Compat<TcpStream>>;

/// Connects to SQL Server or Babelfish; its address is an ADO.NET connection string.
///
/// # Errors
///
/// What tiberius says.
pub async fn tds(url: &str) -> tiberius::Result<Tds> {
    let mut config = Config::from_ado_string(url)?;
    config.encryption(EncryptionLevel::NotSupported);
    let stream = TcpStream::connect(config.get_addr()).await?;
    stream.set_nodelay(true)?;
    Client::connect(config, stream.compat_write()).await
}

/// Runs statements on SQL Server or Babelfish.
///
/// # Errors
///
/// What tiberius says.
pub async fn batch(client: &mut Tds, sql: &str) -> tiberius::Result<()> {
    client.simple_query(sql).await?.into_results().await?;
    Ok(())
}

/// A database of a test's own on SQL Server or Babelfish.
#[derive(Debug, Clone)]
pub struct TdsDatabase {
    url: String,
    name: String,
    babelfish: bool,
}

impl TdsDatabase {
    /// Makes an empty one.
    ///
    /// # Errors
    ///
    /// What tiberius says.
    pub async fn create(url: &str) -> tiberius::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ordid_{}_{number}", std::process::id());
        let mut client = tds(url).await?;
        batch(&mut client, &format!("CREATE DATABASE [{name}]")).await?;
        Ok(Self {
            url: url.to_owned(),
            name,
            babelfish: is_babelfish(&mut client).await?,
        })
    }

    /// Connects to it.
    ///
    /// # Errors
    ///
    /// What tiberius says.
    pub async fn connect(&self) -> tiberius::Result<Tds> {
        let mut client = tds(&self.url).await?;
        batch(&mut client, &format!("USE [{}]", self.name)).await?;
        Ok(client)
    }

    /// Returns whether it is of Babelfish.
    pub fn is_babelfish(&self) -> bool {
        self.babelfish
    }

    /// Returns the address of its server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Drops it.
    ///
    /// # Errors
    ///
    /// What tiberius says.
    pub async fn drop(self) -> tiberius::Result<()> {
        let mut client = tds(&self.url).await?;
        batch(&mut client, &format!("DROP DATABASE [{}]", self.name)).await
    }
}

/// Connects to Oracle, whose address is `oracle://user:password@host:1521/service`; the outer error is of one
/// that is none.
///
/// # Errors
///
/// If it is none; what Oracle says.
pub fn oracle(url: &str) -> Result<Result<oracle::Connection, ordid_oracle::Error>, &'static str> {
    let (user, password, database) =
        apart(url).ok_or("expected oracle://user:password@host:1521/service")?;
    Ok(ordid_oracle::connect(user, password, &database))
}

/// User, password and connect string of a URL.
fn apart(url: &str) -> Option<(&str, &str, String)> {
    let (user, database) = url.strip_prefix("oracle://")?.rsplit_once('@')?;
    let (user, password) = user.split_once(':')?;
    Some((user, password, format!("//{database}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_comes_apart() {
        assert_eq!(
            apart("oracle://scott:ti:ger@db.example:1521/FREEPDB1"),
            Some(("scott", "ti:ger", "//db.example:1521/FREEPDB1".to_owned()))
        );
        assert_eq!(apart("scott/tiger@db"), None);
    }
}
