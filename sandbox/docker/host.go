package docker

import (
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	"caisson/sandbox"
)

// hostSetting names the setting in every error about it.
const hostSetting = "SANDBOX_DOCKER_HOST"

// The ports of an engine whose host names none (CFG-5).
const (
	portTLS   = "2376"
	portPlain = "2375"
)

// transport is how an engine is dialled.
type transport uint8

const (
	transportPlain  transport = iota // a local socket, or a network host without TLS
	transportServer                  // TLS, the server verified, no identity of ours (D6)
	transportMutual                  // mTLS
)

// host is where the engine listens, parsed.
type host struct {
	network   string // unix or tcp
	addr      string // socket path, or host:port
	transport transport
}

// String names the host in messages: the form of SANDBOX_DOCKER_HOST, with the
// port that is really dialled.
func (h host) String() string { return h.network + "://" + h.addr }

// parseHost reads SANDBOX_DOCKER_HOST (CFG-3 to CFG-5, D6). verify is
// SANDBOX_DOCKER_TLS_VERIFY. Errors are KindInvalid, name the setting and never
// repeat more than the value's scheme, since a URL may carry a password.
func parseHost(value string, verify bool) (host, error) {
	if value == "" {
		return host{}, badHost("is required: where the Docker engine listens, for example tcp://engine.example:2376")
	}
	if strings.HasPrefix(value, "/") {
		return socketHost(value)
	}
	scheme, rest, found := strings.Cut(value, "://")
	if !found {
		return host{}, badHost("has no scheme; %s", hostForms)
	}
	switch scheme {
	case "unix":
		return socketHost(rest)
	case "tcp", "http", "https":
		return networkHost(scheme, value, verify)
	default:
		return host{}, badHost("has a scheme that is not known; %s", hostForms)
	}
}

const hostForms = "the forms are unix:///path, /path, tcp://host:port, http://host:port and https://host:port"

// maxSocketPath is what the kernel takes as a socket's path.
const maxSocketPath = 107

func socketHost(p string) (host, error) {
	switch {
	case !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) || path.Clean(p) == "/":
		return host{}, badHost("needs the absolute path of a socket after unix://")
	case len(p) > maxSocketPath:
		return host{}, badHost("has a socket path of more than %d bytes, which the kernel does not take", maxSocketPath)
	}
	return host{network: "unix", addr: p, transport: transportPlain}, nil
}

func networkHost(scheme, value string, verify bool) (host, error) {
	u, err := url.Parse(value)
	if err != nil {
		return host{}, badHost("is not a URL") // err repeats the value
	}
	name, port := u.Hostname(), u.Port()
	switch {
	case name == "":
		return host{}, badHost("names no host after %s://", scheme)
	case u.User != nil:
		return host{}, badHost("must not carry a user or a password")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return host{}, badHost("must end after the port")
	}
	h := host{network: "tcp", transport: transportMutual}
	if !verify {
		h.transport = transportPlain
		if scheme == "https" {
			h.transport = transportServer
		}
	}
	if port == "" {
		port = portTLS
		if h.transport == transportPlain {
			port = portPlain
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return host{}, badHost("has a port that is not between 1 and 65535")
	}
	h.addr = net.JoinHostPort(name, port)
	return h, nil
}

func badHost(format string, args ...any) *sandbox.Error {
	return badSetting(hostSetting, format, args...)
}

// badSetting is an error about one setting, by its name.
func badSetting(name, format string, args ...any) *sandbox.Error {
	e := sandbox.Errorf("read settings", sandbox.KindInvalid, name+" "+format, args...)
	e.Field = name
	return e
}

// name is the host's name or address alone, which a server's certificate is for.
func (h host) name() string {
	name, _, err := net.SplitHostPort(h.addr)
	if err != nil {
		return h.addr
	}
	return name
}
