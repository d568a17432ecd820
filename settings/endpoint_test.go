package settings_test

import (
	"strings"
	"testing"
)

func TestHalvesOfTheEndpointAreRefused(t *testing.T) {
	for _, c := range []struct {
		set  []string
		name string
		text string
	}{
		{[]string{"SANDBOX_MCP_TLS_CERT_PATH=/c.pem"}, "SANDBOX_MCP_TLS_CERT_PATH", "set together"},
		{[]string{"SANDBOX_MCP_TLS_KEY_PATH=/k.pem"}, "SANDBOX_MCP_TLS_CERT_PATH", "set together"},
		{[]string{"SANDBOX_MCP_TLS_CLIENT_CA_PATH=/ca.pem", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml"}, "SANDBOX_MCP_TLS_CLIENT_CA_PATH", "needs SANDBOX_MCP_TLS_CERT_PATH"},
		{[]string{"SANDBOX_MCP_TLS_CLIENT_CA_PATH=/ca.pem", "SANDBOX_MCP_TLS_CERT_PATH=/c.pem", "SANDBOX_MCP_TLS_KEY_PATH=/k.pem"}, "SANDBOX_MCP_TLS_CLIENT_CA_PATH", "needs SANDBOX_MCP_PRINCIPALS_FILE"},
		{[]string{"SANDBOX_MCP_OIDC_ISSUER=https://issuer.example", "SANDBOX_MCP_OIDC_AUDIENCE=a"}, "SANDBOX_MCP_OIDC_ISSUER", "needs SANDBOX_MCP_PRINCIPALS_FILE"},
		{[]string{"SANDBOX_MCP_OIDC_ISSUER=https://issuer.example", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml"}, "SANDBOX_MCP_OIDC_ISSUER", "set together"},
		{[]string{"SANDBOX_MCP_OIDC_AUDIENCE=a", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml"}, "SANDBOX_MCP_OIDC_ISSUER", "set together"},
		{[]string{"SANDBOX_MCP_OIDC_ISSUER=http://issuer.example", "SANDBOX_MCP_OIDC_AUDIENCE=a", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml"}, "SANDBOX_MCP_OIDC_ISSUER", "https://"},
		{[]string{"SANDBOX_MCP_PUBLIC_URL=https://c.example/mcp"}, "SANDBOX_MCP_PUBLIC_URL", "without a path"},
		{[]string{"SANDBOX_MCP_ALLOWED_HOSTS=*.example"}, "SANDBOX_MCP_ALLOWED_HOSTS", "names such as"},
		{[]string{"SANDBOX_MCP_ALLOWED_HOSTS=a.example,,b.example"}, "SANDBOX_MCP_ALLOWED_HOSTS", "names such as"},
		{[]string{"SANDBOX_MCP_RATE_PER_MINUTE=0"}, "SANDBOX_MCP_RATE_PER_MINUTE", "from 1 to"},
		{[]string{"SANDBOX_MCP_MAX_CONNECTIONS=0"}, "SANDBOX_MCP_MAX_CONNECTIONS", "from 1 to"},
	} {
		only(t, faults(t, append(c.set, host, "SANDBOX_MCP_TRANSPORT=http")...), c.name, c.text)
	}
	s := load(t, "SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR=0.0.0.0:8811", "SANDBOX_DOCKER_INSTANCE=one", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml",
		"SANDBOX_MCP_ALLOWED_HOSTS=caisson.example.com, caisson.example.com:8443,[2001:db8::1]:8811,10.1.2.3")
	if got := s.MCP.AllowedHosts; len(got) != 4 || got[1] != "caisson.example.com:8443" {
		t.Errorf("%q", got)
	}
}

func TestTokensInTheClearAreWarnedOf(t *testing.T) {
	open := []string{"SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR=0.0.0.0:8811", "SANDBOX_DOCKER_INSTANCE=one", "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml"}
	if all := load(t, open...).Warnings; len(all) != 1 || !strings.Contains(all[0], "in the clear") {
		t.Errorf("%q", all)
	}
	if all := load(t, append(open, "SANDBOX_MCP_TLS_CERT_PATH=/c.pem", "SANDBOX_MCP_TLS_KEY_PATH=/k.pem")...).Warnings; len(all) != 0 {
		t.Errorf("%q", all)
	}
	if all := load(t, "SANDBOX_MCP_PRINCIPALS_FILE=/p.yml").Warnings; len(all) != 1 || !strings.Contains(all[0], "stdio") {
		t.Errorf("%q", all)
	}
}
