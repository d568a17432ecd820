package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepted sees that the program takes settings as they are in deploy/. The certificates
// are this machine's.
func accepted(t *testing.T, who string, env []string) {
	t.Helper()
	cmd := exec.Command(onStage(t).plain, "config")
	cmd.Env = env
	text, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(text), "nobody reads") || strings.Contains(string(text), "did you mean") {
		t.Errorf("%s: %v\n%s", who, err, text)
	}
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); !regexp.MustCompile(`(?m)` + regexp.QuoteMeta(name) + `\s.*` + regexp.QuoteMeta(value)).Match(text) {
			t.Errorf("%s: %s is not in force:\n%s", who, v, text)
		}
	}
}

func TestNET04_SystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, err := filepath.Abs("../deploy/firewall")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, unit := range []string{"caisson-engine-firewall.service", "caisson.service"} {
		// Where programs are installed there is nothing here, which systemd would notice.
		text := strings.NewReplacer("/usr/local/lib/caisson/firewall", here, "/usr/local/bin/caisson", onStage(t).plain).Replace(deployed(t, unit))
		file := filepath.Join(dir, unit)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	verify := func() string {
		text, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, files...)...).CombinedOutput()
		if err != nil {
			return string(text) + err.Error()
		}
		return string(text)
	}
	if text := verify(); strings.Contains(text, dir) || strings.Contains(text, "caisson") {
		t.Errorf("systemd-analyze: %s", text)
	}
	if err := os.WriteFile(files[0], []byte("[Service]\nExecStart=relative\nNoSuchKey=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := verify(); !strings.Contains(text, "caisson-engine-firewall") {
		t.Errorf("the control: a wrong unit is not noticed: %s", text)
	}
	var env []string
	for line := range strings.Lines(deployed(t, "caisson.env")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	accepted(t, "caisson.env", env)
}

// composed is what is looked at of the compose file.
type composed struct {
	Services map[string]struct {
		Image       string
		Privileged  bool
		ReadOnly    bool `yaml:"read_only"`
		Entrypoint  []string
		Command     []string
		Environment map[string]string
		Volumes     []string
		Ports       []string
		NetworkMode string `yaml:"network_mode"`
		Build       map[string]string
		Drop        []string `yaml:"cap_drop"`
		DependsOn   any      `yaml:"depends_on"`
	}
	Configs map[string]struct{ Content string }
	Volumes map[string]any
}

func TestNET04_SES09_TheComposeFileSharesTheClientIdentityAndNothingElse(t *testing.T) {
	t.Parallel()
	var file composed
	if err := yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	engine, server, door, network := file.Services["engine"], file.Services["caisson"], file.Services["door"], file.Services["network"]
	if len(file.Services) != 4 || server.Image == "" || door.Image == "" || network.Image == "" {
		t.Fatalf("services: %+v", file.Services)
	}
	if !slices.Equal(server.Volumes, []string{"client-identity:/certs/client:ro", "audit:/var/log/caisson"}) {
		t.Errorf("the server mounts %v", server.Volumes)
	}
	for who, s := range file.Services {
		if slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasPrefix(v, "audit:") }) != (who == "caisson") {
			t.Errorf("who has the audit log: %s mounts %v", who, s.Volumes)
		}
	}
	if len(engine.Ports) != 0 || !engine.Privileged || server.Privileged || door.Privileged {
		t.Errorf("engine %+v, server %+v, door %+v", engine, server, door)
	}
	// Who ends and is started again by itself gets into the network that it had: neither of
	// the two holds it for the other.
	if door.NetworkMode != "service:network" || server.NetworkMode != "service:network" || network.NetworkMode != "" ||
		!slices.Equal(network.Ports, []string{"8443:8443"}) || len(server.Ports)+len(door.Ports) != 0 {
		t.Errorf("the way in: %v, %v, %+v", door.NetworkMode, server.NetworkMode, network)
	}
	if len(network.Volumes) != 0 || !slices.Equal(network.Entrypoint, []string{"sleep", "infinity"}) {
		t.Errorf("what holds the network does more than that: %+v", network)
	}
	for who, s := range file.Services {
		if who != "engine" && (!s.ReadOnly || !slices.Equal(s.Drop, []string{"ALL"})) {
			t.Errorf("%s may do more than it needs: %+v", who, s)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := file.Volumes[from]
			_, err := os.Stat(filepath.Join("../deploy", from))
			if strings.Contains(v, ".sock") || !named && !strings.HasPrefix(from, "./") || !named && from != "./tls" && err != nil {
				t.Errorf("%s mounts %s: %v", who, v, err)
			}
		}
	}
	if dockerfile := deployed(t, "Dockerfile"); server.Build["dockerfile"] != "deploy/Dockerfile" || !regexp.MustCompile(`(?s)FROM scratch.*USER [1-9][0-9]*:`).MatchString(dockerfile) {
		t.Errorf("build %v of %s", server.Build, dockerfile)
	}
	var env []string
	for name, value := range server.Environment {
		env = append(env, name+"="+value)
	}
	accepted(t, "compose.yaml", env)

	// The engine's entry point, in a network of its own: the firewall first, then the engine.
	conf := filepath.Join(t.TempDir(), "firewall.conf")
	if err := os.WriteFile(conf, []byte(file.Configs["firewall"].Content), 0o600); err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs("../deploy")
	if err != nil {
		t.Fatal(err)
	}
	argv := append(slices.Clone(engine.Entrypoint), engine.Command...)
	for i, arg := range argv {
		argv[i] = strings.NewReplacer("$$", "$", "/caisson/", deploy+"/", "exec dockerd-entrypoint.sh", "iptables -S; echo engine").Replace(arg)
	}
	got := out(t, append([]string{"unshare", "--net", "env", "CAISSON_FIREWALL_CONF=" + conf}, argv...)...)
	for _, want := range []string{"-A INPUT -j CAISSON-INPUT", "-A DOCKER-USER -j CAISSON-FORWARD", "-i docker0 -j CAISSON-HOST", "engine --icc=false\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the engine's entry point lacks %q:\n%s", want, got)
		}
	}
}

// What the door passes is what clients are to reach: the endpoints, and where a 401 points
// to. What operators ask for stays behind it.
func TestTheDoorPassesWhatClientsNeedAndNothingElse(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile(`(?m)^ *location ~ (\S+) \{$`).FindAllStringSubmatch(deployed(t, "door.conf"), -1)
	if len(m) != 1 {
		t.Fatalf("locations: %v", m)
	}
	passed := regexp.MustCompile(m[0][1])
	const metadata = "/.well-known/oauth-protected-resource"
	for _, path := range []string{"/mcp", "/sse", "/message", metadata, metadata + "/mcp", metadata + "/sse"} {
		if !passed.MatchString(path) {
			t.Errorf("%s is not passed", path)
		}
	}
	for _, path := range []string{"/", "/readyz", "/healthz", "/metrics", "/mcp/", "/mcpx", "/x/mcp", metadata + "x", metadata + "/message", metadata + "/", "/xwell-known/oauth-protected-resource"} {
		if passed.MatchString(path) {
			t.Errorf("%s is passed", path)
		}
	}
}

// The audit log's file can be where the files of deploy/ say that it is, though nothing
// else can be written.
func TestAttackT59_TheAuditLogHasAPlaceWhereTheServerRuns(t *testing.T) {
	t.Parallel()
	const place = "/var/log/caisson"
	setting := regexp.MustCompile(`(?m)^\s*#SANDBOX_MCP_AUDIT_FILE(?:=|: )(\S+)$`)
	for _, name := range []string{"caisson.env", "compose.yaml"} {
		if m := setting.FindStringSubmatch(deployed(t, name)); m == nil || filepath.Dir(m[1]) != place {
			t.Errorf("%s: %v", name, m)
		}
	}
	if text := deployed(t, "caisson.service"); !strings.Contains(text, "\nLogsDirectory="+filepath.Base(place)+"\n") || !strings.Contains(text, "\nProtectSystem=strict\n") {
		t.Error("the unit gives it no directory")
	}
	dir := filepath.Join(t.TempDir(), "tree")
	out(t, "../deploy/tree", dir, "../deploy/tree", "../deploy/tree")
	if info, err := os.Stat(dir + place); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("in the image: %v %v", info, err)
	}
}

// The resolvers that a sandbox may ask are those that the engine gives it, found as the
// engine finds them.
func TestNET04_TheFirewallAsksForTheEnginesResolvers(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../deploy/firewall")
	if err != nil {
		t.Fatal(err)
	}
	const host = "nameserver 127.0.0.53"
	for what, c := range map[string]struct{ conf, daemon, resolv, want string }{
		"its own setting":      {conf: "RESOLVERS='10.0.0.2, fd00::53 127.0.0.1'", daemon: `{"dns": ["10.9.9.9"]}`, resolv: host, want: "10.0.0.2\nfd00::53\n"},
		"the engine's":         {daemon: "{\"hosts\": [\"a\"],\n \"dns\": [\n\"10.9.9.9\", \"127.0.0.1\",\n\"fd00::1\" ], \"mtu\": 1}", resolv: host, want: "10.9.9.9\nfd00::1\n"},
		"systemd-resolved's":   {daemon: `{"hosts": ["a"]}`, resolv: host, want: "10.1.1.1\n"},
		"the host's":           {resolv: "search x\nnameserver 10.2.2.2\nnameserver fe80::1%eth0\nnameserver 127.0.0.1", want: "10.2.2.2\nfe80::1\n"},
		"none but on loopback": {resolv: "nameserver 127.0.0.1"},
	} {
		got := out(t, "unshare", "--mount", "sh", "-ec", `mount -t tmpfs none /etc; mount -t tmpfs none /run; mkdir -p /etc/docker /etc/caisson /run/systemd/resolve
			echo "$1" >/etc/caisson/firewall.conf; [ -z "$2" ] || echo "$2" >/etc/docker/daemon.json; echo "$3" >/etc/resolv.conf
			echo nameserver 10.1.1.1 >/run/systemd/resolve/resolv.conf; exec "$0" resolvers`, script, c.conf, c.daemon, c.resolv)
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	for _, wrong := range []string{"RESOLVERS='1.2.3.4;reboot'", "EXTRA_BRIDGES='docker0 $(reboot)'", "FORM=ufw", "EXTRA_BRIDGES=longer-than-a-name-is"} {
		conf := filepath.Join(t.TempDir(), "firewall.conf")
		if err := os.WriteFile(conf, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.Command("unshare", "--net", "env", "CAISSON_FIREWALL_CONF="+conf, script, "load").CombinedOutput(); err == nil || !strings.HasPrefix(string(text), "firewall: ") {
			t.Errorf("%s: %v %s", wrong, err, text)
		}
	}
}
