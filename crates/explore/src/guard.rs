//! Who may ask: requests for this very address (no name of somebody else's that leads here), from this page, and, where
//! others can reach the address, with the token. What comes back tells browsers to load nothing from elsewhere.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Bytes of a request's body, at most.
const MOST_BYTES: usize = 64 << 10;
/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(15);
const COOKIE: &str = "equicaps_token";

/// The rules of one server.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Where the server listens.
    pub port: u16,
    /// A name that it may be called by, besides loopback addresses.
    pub name: Option<String>,
    /// What must be known by whoever asks.
    pub token: Option<String>,
}

impl Guard {
    /// Whether a `Host` header names this server.
    fn is_here(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        if port != Some(self.port) {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let address: Option<IpAddr> = bare.parse().ok();
        let is_loopback = address.is_some_and(|address| address.is_loopback());
        if is_loopback || name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        // Names can be made to lead anywhere; numbers cannot, and whoever comes by one needs the token.
        let Some(own) = &self.name else { return false };
        address.is_some() || own.eq_ignore_ascii_case(name)
    }

    /// Whether a request may be answered, or why not.
    fn check(&self, request: &Request) -> Result<(), (StatusCode, &'static str)> {
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.is_here(host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this server is not called by that name"));
        }
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if let Some(origin) = text(header::ORIGIN)
            && origin.strip_prefix("http://") != Some(host)
        {
            return Err((StatusCode::FORBIDDEN, "requests from other pages are not answered"));
        }
        let site = text(HeaderName::from_static("sec-fetch-site"));
        let is_page = request.uri().path() == "/";
        if !is_page && site.is_some_and(|site| site != "same-origin" && site != "none") {
            return Err((StatusCode::FORBIDDEN, "requests from other pages are not answered"));
        }
        match &self.token {
            Some(token) if !is_known(token, headers, request.uri().query()) => {
                Err((StatusCode::UNAUTHORIZED, "open the address that the program printed, with its token"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a request has the token: as a cookie, as `Authorization: Bearer`, or in the address.
fn is_known(token: &str, headers: &HeaderMap, query: Option<&str>) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    cookies.any(|(name, value)| name == COOKIE && same(value, token))
        || bearer.is_some_and(|value| same(value, token))
        || in_address(query).is_some_and(|value| same(value, token))
}

fn in_address(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Whether two words are the same, in a time that does not say where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// Lets a request through, or not.
pub async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if let Err((status, why)) = guard.check(&request) {
        return with_headers((status, format!("{why}\n")).into_response());
    }
    // Whoever comes with the token in the address keeps it as a cookie, so that it does not stay in the address.
    if let (Some(token), Some(_), "/") =
        (&guard.token, in_address(request.uri().query()), request.uri().path())
    {
        let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/");
        let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
        return with_headers((StatusCode::SEE_OTHER, headers).into_response());
    }
    let (parts, body) = request.into_parts();
    let bytes = match tokio::time::timeout(BODY_TIME, to_bytes(body, MOST_BYTES)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return with_headers(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => return with_headers(StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    with_headers(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}

fn with_headers(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
                          connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> Guard {
        Guard { port: 8020, name: None, token: None }
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri("/api/state");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_this_server_is_meant() {
        for host in ["127.0.0.1:8020", "localhost:8020", "LOCALHOST:8020", "[::1]:8020"] {
            assert!(local().check(&request(&[("host", host)])).is_ok(), "{host}");
        }
        for host in [
            "evil.example:8020",
            "127.0.0.1",
            "127.0.0.1:80",
            "10.0.0.7:8020",
            "localhost.evil.example:8020",
            "",
            "::1",
        ] {
            let refused = local().check(&request(&[("host", host)])).unwrap_err();
            assert_eq!(refused.0, StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        assert!(local().check(&request(&[])).is_err());
        let two = request(&[("host", "127.0.0.1:8020"), ("host", "evil.example")]);
        assert!(local().check(&two).is_err());
        let open = Guard { name: Some("box".to_owned()), token: Some("t".to_owned()), ..local() };
        let with = |host| request(&[("host", host), ("authorization", "Bearer t")]);
        assert!(open.check(&with("box:8020")).is_ok() && open.check(&with("10.0.0.7:8020")).is_ok());
        assert!(open.check(&with("evil.example:8020")).is_err());
    }

    #[test]
    fn other_pages_are_refused() {
        let host = ("host", "localhost:8020");
        assert!(local().check(&request(&[host, ("origin", "http://localhost:8020")])).is_ok());
        assert!(local().check(&request(&[host, ("sec-fetch-site", "same-origin")])).is_ok());
        for other in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:8021"),
            ("sec-fetch-site", "cross-site"),
        ] {
            assert_eq!(
                local().check(&request(&[host, other])).unwrap_err().0,
                StatusCode::FORBIDDEN,
                "{other:?}"
            );
        }
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let guard = Guard { token: Some("abc".to_owned()), ..local() };
        let host = ("host", "127.0.0.1:8020");
        for header in [("cookie", "a=b; equicaps_token=abc"), ("authorization", "Bearer abc")] {
            assert!(guard.check(&request(&[host, header])).is_ok(), "{header:?}");
        }
        for header in [("cookie", "equicaps_token=abd"), ("cookie", "token=abc"), ("authorization", "abc")] {
            assert_eq!(
                guard.check(&request(&[host, header])).unwrap_err().0,
                StatusCode::UNAUTHORIZED,
                "{header:?}"
            );
        }
        assert!(is_known("abc", &HeaderMap::new(), Some("x=1&token=abc")));
        assert!(!is_known("abc", &HeaderMap::new(), Some("token=")));
    }
}
