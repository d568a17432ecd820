package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const matrixToken = "token-of-the-matrix-0123456789abcdef"

// pairing is one cell of the matrix: a client, an era of the protocol and a transport.
type pairing struct {
	client, era, transport string
	play                   func(t *testing.T, p pairing, m matrix) experience
}

func (p pairing) String() string { return p.client + ", " + p.era + ", " + p.transport }

// experience is what a client has met, in its own words where it was refused.
type experience struct {
	Tools   []string `json:"tools"`
	Code    string   `json:"code"`    // of a call with a handle that never was
	Stdout  string   `json:"stdout"`  // of a command
	Steps   int      `json:"steps"`   // reports of progress; below zero for a client that shows none
	Era     string   `json:"era"`     // that the client says it speaks; empty for one that does not say
	Refused []string `json:"refused"` // one for a wrong token, one for none
}

// matrix is what a client meets: a shared endpoint with one principal, or the program,
// which it starts on stdio.
type matrix struct {
	url     string
	program string
	env     []string
}

// pairings is the whole table. Each make of client is there with each transport and each
// era that it speaks; docs/protocol.md lists what is not here.
func pairings() []pairing {
	var all []pairing
	for _, transport := range []string{"stdio", "http", "sse"} {
		all = append(all, pairing{"TypeScript SDK v1", "legacy", transport, playScript})
		for _, era := range []string{"legacy", "modern"} {
			all = append(all,
				pairing{"TypeScript SDK v2", era, transport, playScript},
				pairing{"inspector", era, transport, playInspector},
				pairing{"mcp-go", era, transport, playGo})
		}
	}
	return all
}

// TestBugMS01_AttackT45_EveryClientOverEveryTransport has each client list the tools, be
// told of a handle that never was, run a command in a real session with progress, and be
// refused with a wrong token and without one.
func TestBugMS01_AttackT45_EveryClientOverEveryTransport(t *testing.T) {
	t.Parallel()
	tools := slices.Sorted(slices.Values(everyTool))
	for i, p := range pairings() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			met := p.play(t, p, p.meet(t, i))
			if !slices.Equal(met.Tools, tools) {
				t.Errorf("tools %v", met.Tools)
			}
			if met.Code != "session_not_found" || met.Stdout != "1\n2\n3\n4\n" {
				t.Errorf("an unknown handle is answered %q, a command %q", met.Code, met.Stdout)
			}
			if met.Steps == 0 || met.Steps > 20 {
				t.Errorf("%d reports of progress of a command of four seconds", met.Steps)
			}
			if met.Era != "" && met.Era != p.era {
				t.Errorf("speaks %s", met.Era)
			}
			p.refusals(t, met.Refused)
		})
	}
}

// meet starts what a client meets. Each has an endpoint of its own: ten wrong tokens from
// one address lock it out.
func (p pairing) meet(t *testing.T, i int) matrix {
	t.Helper()
	s := onStage(t)
	if p.transport == "stdio" {
		return matrix{program: s.plain, env: append([]string{fmt.Sprintf("SANDBOX_DOCKER_INSTANCE=%smatrix%d", s.run, i)}, s.env...)}
	}
	return matrix{url: start(t, launch{http: true, plain: true, env: []string{"SANDBOX_MCP_PRINCIPALS_FILE=" + onePrincipal(t)}}).url}
}

// refusals wants a refusal for each way to come without the right token. On stdio there
// are no tokens.
func (p pairing) refusals(t *testing.T, refused []string) {
	t.Helper()
	want := 2
	if p.transport == "stdio" {
		want = 0
	}
	if len(refused) != want {
		t.Errorf("%d refusals: %q", len(refused), refused)
	}
	for _, words := range refused {
		known := func(sign string) bool { return strings.Contains(strings.ToLower(words), sign) }
		if !slices.ContainsFunc([]string{"401", "nobody's", "who calls?", "auth_required", "unauthorized", "authorization required"}, known) {
			t.Errorf("refused with %q", words)
		}
	}
}

// onePrincipal writes the file of principals that the endpoint has.
func onePrincipal(t *testing.T) string {
	t.Helper()
	sum := sha256.Sum256([]byte(matrixToken))
	name := filepath.Join(t.TempDir(), "principals.yml")
	text := "principals:\n  - {name: team, token_sha256: " + hex.EncodeToString(sum[:]) + "}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// playScript has one of the scripts for Node.js play.
func playScript(t *testing.T, p pairing, m matrix) experience {
	t.Helper()
	argv := []string{"client_v1.mjs"}
	if p.client == "TypeScript SDK v2" {
		argv = []string{"client_v2.mjs", p.era}
	}
	env, target := []string{"CAISSON_TOKEN=" + matrixToken}, m.url
	if p.transport == "stdio" {
		env, target = m.env, m.program
	}
	out, complaints, err := node(t, env, append(argv, p.transport, target)...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, tail(complaints))
	}
	var met experience
	if err := json.Unmarshal([]byte(out), &met); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return met
}

// playInspector calls the inspector's command line, which connects anew for each step.
func playInspector(t *testing.T, p pairing, m matrix) experience {
	t.Helper()
	list, complaints, err := node(t, nil, m.inspect(t, p, "Bearer "+matrixToken, "tools/list")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(complaints))
	}
	met := experience{Steps: -1}
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(list), &answer); err != nil {
		t.Fatalf("%v: %s", err, clip(list))
	}
	for _, tool := range answer.Result.Tools {
		met.Tools = append(met.Tools, tool.Name)
	}
	call := func(tool, arguments string) (r result) {
		// A server that has just started may ask for a moment's patience.
		eventually(t, 30*time.Second, tool+" is answered", func() bool {
			// The inspector's exit status tells of the tool's own failure.
			out, complaints, _ := node(t, nil, m.inspect(t, p, "Bearer "+matrixToken, "tools/call", "--tool-name", tool, "--tool-args-json", arguments)...)
			var answer struct{ Result result }
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%s: %v: %s\n%s", tool, err, clip(out), tail(complaints))
			}
			r = answer.Result
			return r.code() != "engine_unavailable"
		})
		return r
	}
	if r := call("session_list", "{}"); r.IsError {
		t.Error(r.text())
	}
	met.Code = call("exec", `{"session_id":"sbx_`+strings.Repeat("a", 26)+`","command":"true"}`).code()
	met.Stdout = into[execOut](t, call("run", `{"command":"seq 4"}`)).Stdout
	if p.transport == "stdio" {
		return met
	}
	for _, authorization := range []string{"Bearer " + matrixToken + "x", ""} {
		out, complaints, err := node(t, nil, m.inspect(t, p, authorization, "tools/list")...)
		if err == nil {
			t.Errorf("let in with %q: %s", authorization, clip(out))
		}
		met.Refused = append(met.Refused, complaints)
	}
	return met
}

// inspect makes the inspector's command line. It hands the program on stdio no variable
// but those that it is told to.
func (m matrix) inspect(t *testing.T, p pairing, authorization, method string, more ...string) []string {
	t.Helper()
	argv := []string{inspectorMain(t), "--cli"}
	switch p.transport {
	case "http":
		argv = append(argv, m.url+"/mcp")
	case "sse":
		argv = append(argv, m.url+"/sse", "--transport", "sse")
	default:
		for _, variable := range m.env {
			argv = append(argv, "-e", variable)
		}
	}
	argv = append(argv, "--protocol-era", p.era, "--method", method, "--format", "json", "-q")
	argv = append(argv, more...)
	if p.transport == "stdio" {
		return append(argv, "--", m.program, "serve")
	}
	if authorization != "" {
		argv = append(argv, "--header", "Authorization: "+authorization)
	}
	return argv
}

// playGo plays with mcp-go's client.
func playGo(t *testing.T, p pairing, m matrix) experience {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	version := map[string]string{"legacy": legacyVersion, "modern": modernVersion}[p.era]
	open := func(token string) (goClient, error) { return p.open(ctx, m, version, token) }
	c, err := open(matrixToken)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	met := c.experience(ctx, t, p)
	if p.transport == "stdio" {
		return met
	}
	for _, token := range []string{matrixToken + "x", ""} {
		if c, err := open(token); err == nil {
			t.Errorf("let in with the token %q", token)
			_ = c.close()
		} else {
			met.Refused = append(met.Refused, err.Error())
		}
	}
	return met
}

// open connects mcp-go's client.
func (p pairing) open(ctx context.Context, m matrix, version, token string) (goClient, error) {
	headers := map[string]string{}
	if token != "" {
		headers["Authorization"] = "Bearer " + token
	}
	var (
		link transport.Interface
		err  error
	)
	switch p.transport {
	case "http":
		link, err = transport.NewStreamableHTTP(m.url+"/mcp", transport.WithHTTPHeaders(headers))
	case "sse":
		link, err = transport.NewSSE(m.url+"/sse", transport.WithHeaders(headers), transport.WithResponseTimeout(time.Minute))
	default:
		link = transport.NewStdio(m.program, m.env, "serve")
	}
	if err != nil {
		return goClient{}, fmt.Errorf("%s: %w", p, err)
	}
	return greet(ctx, link, version)
}

// experience has a connected client take the steps of the matrix.
func (c goClient) experience(ctx context.Context, t *testing.T, p pairing) experience {
	t.Helper()
	var steps atomic.Int64
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" && n.Params.AdditionalFields["progressToken"] == p.String() {
			steps.Add(1)
		}
	})
	met := experience{Era: p.era}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		met.Tools = append(met.Tools, tool.Name)
	}
	a := &actor{t: t, conn: c}
	eventually(t, 30*time.Second, "a server that has just started answers", func() bool { return !a.do("session_list", args{}).IsError })
	met.Code = a.do("exec", args{"session_id": "sbx_" + strings.Repeat("a", 26), "command": "true"}).code()
	request := mcp.CallToolRequest{}
	request.Params.Name = "exec"
	request.Params.Arguments = args{"session_id": a.session(nil), "command": "for i in 1 2 3 4; do echo $i; sleep 1; done"}
	request.Params.Meta = &mcp.Meta{ProgressToken: p.String()}
	r, err := answered(c.CallTool(ctx, request))
	if err != nil {
		t.Fatal(err)
	}
	met.Stdout, met.Steps = into[execOut](t, r).Stdout, int(steps.Load())
	return met
}
