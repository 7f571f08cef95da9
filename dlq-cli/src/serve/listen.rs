//! The dashboard on an address of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::Dashboard;
use super::app::Access;

/// So many connections at once; others wait to be accepted.
const CONNECTIONS: usize = 512;

/// The head of a request comes within this time; an idle connection ends after it.
const HEAD_WITHIN: Duration = Duration::from_secs(20);

/// Why the dashboard does not listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// Others than this machine reach the address, and nobody would have to say who they are.
    Open(SocketAddr),
    /// The address cannot be had.
    Io(SocketAddr, io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(address) => write!(
                f,
                "{address} is reached by other machines, and nobody would have to log in: give a file of tokens, or listen on \
                 127.0.0.1"
            ),
            Self::Io(address, error) => write!(f, "cannot listen on {address}: {error}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// A dashboard that listens, and is not served yet.
#[derive(Debug)]
#[must_use = "nobody is served before `run`"]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    dashboard: Dashboard,
}

/// Listens on an address; [`Listening::run`] serves.
///
/// # Errors
/// [`ListenError::Open`] for an address that is not this machine's alone while the dashboard asks nobody who they are.
pub async fn listen(dashboard: Dashboard, address: SocketAddr) -> Result<Listening, ListenError> {
    let asks = !matches!(dashboard.app.access, Access::Everybody(_));
    if !address.ip().to_canonical().is_loopback() && !asks {
        return Err(ListenError::Open(address));
    }
    let failed = |error| ListenError::Io(address, error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // On an address of its own it looks at the names itself.
    let dashboard = if dashboard.app.hosts.is_none() { dashboard.hosts([""; 0]) } else { dashboard };
    Ok(Listening { listener, address, dashboard })
}

impl Listening {
    /// The address: with the port that was found for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready; requests that run then have five seconds to end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let service = TowerToHyperService::new(self.dashboard.router());
        let (room, (ends, ended)) = (Arc::new(Semaphore::new(CONNECTIONS)), watch::channel(false));
        tokio::pin!(stop);
        loop {
            let accepted = async {
                let place = Arc::clone(&room).acquire_owned().await.ok()?;
                Some((self.listener.accept().await, place))
            };
            let (stream, place) = tokio::select! {
                () = &mut stop => break,
                accepted = accepted => match accepted {
                    Some((Ok((stream, _)), place)) => (stream, place),
                    // Out of file descriptors, or a peer that has gone already: not the end.
                    Some((Err(_), _)) | None => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            // A page is whole when it is written: nothing more is waited for. Where that cannot be said, it is only slower.
            let _at_once = stream.set_nodelay(true);
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(64 << 10);
            let connection = http.serve_connection(TokioIo::new(stream), service.clone());
            let mut ended = ended.clone();
            tokio::spawn(async move {
                let _place = place;
                tokio::pin!(connection);
                let ends = async {
                    // An end of the sender is an end, too.
                    let _end = ended.wait_for(|end| *end).await;
                };
                tokio::select! {
                    // What a peer does wrong is its own affair.
                    _ended = connection.as_mut() => return Ok::<(), Infallible>(()),
                    () = ends => connection.as_mut().graceful_shutdown(),
                }
                let _ended = tokio::time::timeout(Duration::from_secs(5), connection).await;
                Ok(())
            });
        }
        let _told = ends.send(true);
        let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        // Streams of changes have no end of their own.
        let _ended = tokio::time::timeout(Duration::from_secs(5), room.acquire_many(all)).await;
    }
}
