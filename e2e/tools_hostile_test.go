package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// hostileForms are the forms of the test image's hostile server, with what of it is
// listed: "" where nothing is.
var hostileForms = map[string]string{
	"many": "many_tool_1", "endless": "", "fat": "", "shadow": "shadow_exec", "nolist": "", "die": "die_echo", "mute": "mute_echo", "flood": "flood_echo",
	"flood-stderr": "floodstderr_echo", "junk": "junk_echo", "ask": "ask_echo", "ask-flood": "askflood_echo", "twice": "twice_echo", "progress": "progress_echo",
	"noresult": "noresult_echo", "refuse": "refuse_echo", "mute-start": "", "old": "", "die-start": "", "stubborn": "stubborn_echo",
}

func prefixOf(form string) string { return strings.ReplaceAll(form, "-", "") }

func hostileManifest(mode string) string {
	forms := make([]string, 0, len(hostileForms))
	for form := range hostileForms {
		forms = append(forms, form)
	}
	slices.Sort(forms)
	text := "toolkits:\n" + toolkit("Decent", "decent", "caisson-test-server", "decent")
	rules := "execution_policy:\n  rules:\n"
	for _, form := range forms {
		text += toolkit("Kit-"+form, prefixOf(form), "caisson-test-server", form)
	}
	// Twenty servers at once: five containers, so that the machine of a test can.
	for i, form := range forms {
		rules += fmt.Sprintf("    Kit-%s: {name: bad%d, remote_timeout_seconds: 40}\n", form, i%4)
	}
	text += "executors:\n"
	for i := range 4 {
		text += fmt.Sprintf("  bad%d: {name: docker, options: {mode: %s, env: {BAD_KEY: bad-canary-%s}}}\n", i, mode, "0123456789")
	}
	return text + rules + "    decent: {name: docker, options: {env: {GOOD_KEY: good-canary-0123456789}}}\n"
}

// A hostile server harms nothing but itself, in each of its forms.
func TestAttackT54_TX20_AHostileServerHarmsNothingButItself(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true, env: toolsEnv(manifest(t, hostileManifest("warm")), "SANDBOX_MCP_LOG_LEVEL=debug")})
	a := join(t, v, httpLegacy)
	listing(t, a, "decent_echo")
	for form, name := range hostileForms {
		if name != "" {
			listing(t, a, name)
		}
		t.Run(form, func(t *testing.T) { callHostile(t, join(t, v, httpLegacy), v, form, name) })
	}
	all := tools(t, a)
	seen, many := map[string]bool{}, 0
	for _, tool := range all {
		if seen[tool.Name] || len(tool.Description) > 2048 {
			t.Errorf("%s is there twice, or has %d bytes of description", tool.Name, len(tool.Description))
		}
		seen[tool.Name] = true
		if strings.HasPrefix(tool.Name, "many_") {
			many++
		}
	}
	if many != 500 || len(all) > 1000 {
		t.Errorf("%d tools are listed, %d of the server that has 900", len(all), many)
	}
	for _, builtin := range everyTool {
		if !seen[builtin] {
			t.Errorf("%s is not listed beside hostile toolkits", builtin)
		}
	}
	// Nothing of ours went in: no token, no setting, no other toolkit's key.
	env := a.tool("decent_env", args{"name": "BAD_KEY"}).text()
	if env != "" {
		t.Errorf("a toolkit sees the key of another: %q", env)
	}
	began := time.Now()
	if err := v.end(); err != nil {
		t.Error(err)
	}
	took(t, began, 10*time.Second, "the end of a server with hostile toolkits")
	if left := the.engine.toolBoxes(t, v.instance); len(left) != 0 {
		t.Errorf("%d tool containers are left", len(left))
	}
}

// callHostile calls one form's tool, whatever comes of it, and then what stands
// beside it: another toolkit, and a built-in tool.
func callHostile(t *testing.T, a *actor, v *server, form, name string) {
	t.Helper()
	a.t = t
	began := time.Now()
	if name != "" {
		r := a.do(name, args{})
		switch form {
		case "many", "shadow", "flood-stderr", "ask", "twice", "progress", "stubborn", "ask-flood", "junk":
			if r.IsError && form != "many" && form != "junk" && form != "ask-flood" && form != "shadow" {
				t.Errorf("%s", clip(r.text()))
			}
		default:
			if r.code() != "tool_failed" {
				t.Errorf("no failure: %s", clip(r.text()))
			}
		}
		if strings.Contains(r.text(), "forged") || strings.Contains(r.text(), "bad-canary") || r.size > 1<<20 {
			t.Errorf("%d bytes: %s", r.size, clip(r.text()))
		}
	} else if r, err := a.call(t.Context(), prefixOf(form)+"_echo", args{}); err == nil && !r.IsError {
		t.Errorf("a toolkit that cannot be listed answers: %s", clip(r.text()))
	}
	took(t, began, 60*time.Second, "the call")
	if got := a.tool("decent_echo", args{"beside": form}).text(); !strings.Contains(got, form) {
		t.Errorf("another toolkit beside it: %q", got)
	}
	if r := a.ok("session_list", nil); r.IsError {
		t.Error(r.text())
	}
}

// A server that changes a definition after it was approved is not served any more
// (a rug pull); one whose definition is not the pinned one never is.
func TestAttackT54_ADefinitionThatChangesIsBlocked(t *testing.T) {
	t.Parallel()
	v := serveTools(t, "toolkits:\n"+toolkit("Rug", "rug", "caisson-test-server", "rug")+
		"  - {name: Pinned, tool_prefix: pinned, command: [caisson-test-server, decent], pins: {echo: \"sha256:"+strings.Repeat("0", 64)+"\"}}\n"+
		"execution_policy: {rules: {Rug: {name: docker, options: {idle_ttl_seconds: 2}}}}\n")
	a := join(t, v, httpLegacy)
	listing(t, a, "rug_echo")
	listing(t, a, "pinned_echo")
	r := a.fails("tool_unavailable", "pinned_echo", args{})
	if !strings.Contains(r.text(), "sha256:") {
		t.Errorf("%s", r.text())
	}
	a.tool("pinned_get", args{})
	before := tools(t, a)
	// The server says something else in each container. The one that was listed is
	// removed when it has been idle, and the list of the next one is compared.
	eventually(t, time.Minute, "the container is idle and gone", func() bool {
		return !slices.ContainsFunc(the.engine.toolBoxes(t, v.instance), func(c container.Summary) bool {
			return strings.Contains(before[indexOf(before, "rug_echo")].Description, c.ID[:12])
		})
	})
	eventually(t, time.Minute, "the changed tool is blocked", func() bool {
		r := a.do("rug_echo", args{})
		return r.code() == "tool_unavailable" && strings.Contains(r.text(), "another way")
	})
	if now := tools(t, a); now[indexOf(now, "rug_echo")].Description != before[indexOf(before, "rug_echo")].Description {
		t.Error("the new definition is shown")
	}
	if !strings.Contains(v.stderr.String(), "is blocked") {
		t.Error("the log does not tell of it")
	}
	a.tool("pinned_get", args{}) // the others go on
}

func indexOf(all []declaredAs, name string) int {
	return slices.IndexFunc(all, func(d declaredAs) bool { return d.Name == name })
}
