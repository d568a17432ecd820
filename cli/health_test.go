package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"caisson/cli"
)

// health asks a server at that address, with the endpoint's settings as given.
func health(addr string, env ...string) (code int, said string) {
	var out, errs bytes.Buffer
	code = cli.Run(context.Background(), cli.Process{
		Args: []string{"health"}, Environ: append([]string{"SANDBOX_DOCKER_HOST=tcp://engine.test:2376", "SANDBOX_MCP_ADDR=" + addr}, env...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return code, out.String() + errs.String()
}

func TestHealthAsksAServerAsItIsMeantToSpeak(t *testing.T) {
	alive := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write([]byte("alive\n"))
	})
	plain, secure := httptest.NewServer(alive), httptest.NewTLSServer(alive)
	defer plain.Close()
	defer secure.Close()
	tls := []string{"SANDBOX_MCP_TLS_CERT_PATH=/tls/cert.pem", "SANDBOX_MCP_TLS_KEY_PATH=/tls/key.pem"}
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for name, c := range map[string]struct {
		addr string
		env  []string
		code int
		want string
	}{
		"plain":                    {at(plain), nil, 0, "alive"},
		"TLS":                      {at(secure), tls, 0, ""},
		"TLS, asked without":       {at(secure), nil, 1, "set SANDBOX_MCP_TLS_CERT_PATH as it has it"},
		"plain, asked by TLS":      {at(plain), tls, 1, "not alive"},
		"nobody there":             {"127.0.0.1:1", nil, 1, "not alive"},
		"nobody there, to the TLS": {"127.0.0.1:1", tls, 1, "not alive"},
	} {
		if code, said := health(c.addr, c.env...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit status %d, %s", name, code, said)
		}
	}
}
