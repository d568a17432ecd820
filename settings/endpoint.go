package settings

import (
	"net"
	"regexp"
	"strings"
)

// hostForm is a name or an address as a Host header has it. What could stand for
// more than one is none.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func (s *Settings) checkEndpoint(faults *Faults) {
	m := s.MCP
	if (m.TLSCertPath == "") != (m.TLSKeyPath == "") {
		faults.add(MCPPrefix+"TLS_CERT_PATH", "and %sTLS_KEY_PATH are set together or not at all", MCPPrefix)
	}
	if m.TLSClientCAPath != "" && m.TLSCertPath == "" {
		faults.add(MCPPrefix+"TLS_CLIENT_CA_PATH", "needs %sTLS_CERT_PATH", MCPPrefix)
	}
	for name, value := range map[string]string{"OIDC_ISSUER": m.OIDCIssuer, "TLS_CLIENT_CA_PATH": m.TLSClientCAPath} {
		if value != "" && m.PrincipalsFile == "" && !faults.Has(MCPPrefix+name) {
			faults.add(MCPPrefix+name, "needs %sPRINCIPALS_FILE, which says whom its clients are", MCPPrefix)
		}
	}
	if (m.OIDCIssuer == "") != (m.OIDCAudience == "") {
		faults.add(MCPPrefix+"OIDC_ISSUER", "and %sOIDC_AUDIENCE are set together or not at all", MCPPrefix)
	}
	s.want(faults, MCPPrefix+"PUBLIC_URL", m.PublicURL, isOrigin)
	s.MCP.AllowedHosts = s.list(faults, MCPPrefix+"ALLOWED_HOSTS", m.AllowedHosts, hostForm.MatchString)
	s.want(faults, MCPPrefix+"OIDC_ISSUER", m.OIDCIssuer, func(v string) bool { return strings.HasPrefix(v, "https://") })
}

// warnEndpoint tells of what has no effect, or less than one could think.
func (s *Settings) warnEndpoint() {
	m := s.MCP
	if m.Transport != "http" {
		for _, name := range []string{"PRINCIPALS_FILE", "TLS_CERT_PATH"} {
			if s.given[MCPPrefix+name] != "" {
				s.Warnings = append(s.Warnings, MCPPrefix+name+" has no effect: stdio has one client, which started the server")
			}
		}
		return
	}
	if host, _, err := net.SplitHostPort(m.Addr); err == nil && !loopback(host) && m.TLSCertPath == "" {
		s.Warnings = append(s.Warnings, MCPPrefix+"TLS_CERT_PATH is not set: tokens travel in the clear unless a proxy with TLS stands before "+MCPPrefix+"ADDR")
	}
}
