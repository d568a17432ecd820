package enginetest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Serve answers with handler behind this configuration of TLS, until the test
// ends; a nil one is plain. It returns the address.
func Serve(t *testing.T, config *tls.Config, handler http.Handler) string {
	t.Helper()
	listen, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	addr := listen.Addr().String()
	if config != nil {
		listen = tls.NewListener(listen, config)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(listen) })
	t.Cleanup(func() {
		_ = server.Close()
		work.Wait()
	})
	return addr
}

// Ping answers a ping like an engine of this API version, and nothing else.
func Ping(version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", version)
		if !strings.HasSuffix(r.URL.Path, "/_ping") {
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	})
}
