package settings_test

import (
	"strings"
	"testing"

	"caisson/settings"
)

// Whoever reaches /metrics may read it, so that it is never on an address that others
// reach unless an operator has put it there.
func TestMetricsAreOpenOnlyOnOnesOwnMachine(t *testing.T) {
	shared := []string{"SANDBOX_MCP_TRANSPORT=http", "SANDBOX_DOCKER_INSTANCE=i"}
	for _, c := range []struct {
		set  string
		open bool
	}{
		{"SANDBOX_MCP_ADDR=127.0.0.1:8811", true},
		{"SANDBOX_MCP_ADDR=[::1]:8811", true},
		{"SANDBOX_MCP_ADDR=localhost:8811", true},
		{"SANDBOX_MCP_ADDR=127.0.0.1:8811 SANDBOX_MCP_PRINCIPALS_FILE=/p.yml", false},
		{"SANDBOX_MCP_ADDR=127.0.0.1:8811 SANDBOX_MCP_OIDC_ISSUER=https://i SANDBOX_MCP_OIDC_AUDIENCE=a", false},
		{"SANDBOX_MCP_ADDR=192.0.2.1:8811", false},
		{"SANDBOX_MCP_ADDR=0.0.0.0:8811", false},
	} {
		s, _ := settings.Load(append(append([]string{}, shared...), strings.Fields(c.set)...)) // not every one of these can serve
		if got := s.MCP.OpenMetrics(); got != c.open {
			t.Errorf("%s: open %v", c.set, got)
		}
	}
	all := faults(t, "SANDBOX_DOCKER_HOST=tcp://e", "SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_METRICS_ADDR=127.0.0.1:8811")
	if len(all) != 1 || all[0].Name != "SANDBOX_MCP_METRICS_ADDR" {
		t.Errorf("the endpoint's own address: %v", all)
	}
}
