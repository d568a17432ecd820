package docker

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
)

func TestFlawsAreToldByVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, runc, want string }{
		{"20.10.24+dfsg1", "1.1.5+ds1", "CVE-2024-29018 CVE-2024-21626 CVE-2025-31133"},
		{"23.0.11", "1.1.12", "CVE-2025-31133"},
		{"24.0.9", "1.2.7", "CVE-2024-29018 CVE-2025-31133"},
		{"v25.0.5", "1.2.8", ""},
		{"27.5.1", "1.3.2", "CVE-2025-31133"},
		{"28.5.2+dfsg4", "1.3.6+ds1", ""},
		{"dev", "1.4.0-rc.3", "CVE-2024-29018"},
	} {
		var got []string
		for _, check := range checkFlaws(types.Version{Components: []types.ComponentVersion{
			{Name: "Engine", Version: c.engine}, {Name: "containerd", Version: "1.0.0"}, {Name: "runc", Version: c.runc},
		}}) {
			if !check.OK || !check.Warn || check.Mend == "" {
				t.Errorf("%+v", check)
			}
			got = append(got, check.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("engine %s, runc %s: %v, want %s", c.engine, c.runc, got, c.want)
		}
	}
}
