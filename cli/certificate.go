package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"caisson/settings"
)

// certificateEvery is how often a handshake may look whether the files have
// changed.
const certificateEvery = time.Second

// certificate is the endpoint's own TLS: its certificate, and the authority that
// clients' certificates are verified against. The files are read again when they
// have changed; what cannot be used changes nothing, and the log says so.
type certificate struct {
	cert, key, clientCA string // clientCA may be empty
	log                 *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   string // what the files were when they were read
	config *tls.Config
}

// openCertificate reads the files that the settings name; nil when they name
// none. The error is settings.Faults.
func openCertificate(m settings.MCP, log *slog.Logger) (*certificate, error) {
	if m.TLSCertPath == "" {
		return nil, nil
	}
	c := &certificate{cert: m.TLSCertPath, key: m.TLSKeyPath, clientCA: m.TLSClientCAPath, log: log}
	c.seen = c.stamp()
	var wrong certificateFault
	config, err := c.read()
	if errors.As(err, &wrong) {
		return nil, settings.Faults(nil).With(settings.MCPPrefix+wrong.setting, wrong.text)
	}
	c.config, c.looked = config, time.Now()
	return c, err
}

// certificateFault is a file that cannot be used, by the setting that names it.
type certificateFault struct{ setting, text string }

func (f certificateFault) Error() string { return settings.MCPPrefix + f.setting + " " + f.text }

// server is the configuration of the listener. A handshake takes what the files
// are then.
func (c *certificate) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current(), nil
		},
	}
}

// current is what the files say, looked at once in certificateEvery. The same
// value stays for as long as they do not change: with a new one, connections that
// were resumed from before are verified anew.
func (c *certificate) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.config
	}
	c.looked = time.Now()
	stamp := c.stamp()
	if stamp == c.seen {
		return c.config
	}
	c.seen = stamp
	config, err := c.read()
	if err != nil {
		c.log.Error("the endpoint's certificate has changed and cannot be used; the one before stays in force", "error", err)
		return c.config
	}
	c.log.Info("the endpoint's certificate has been read again")
	c.config = config
	return config
}

func (c *certificate) stamp() string {
	stamp := ""
	for _, name := range []string{c.cert, c.key, c.clientCA} {
		if info, err := os.Stat(name); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Sys(), "|")
		}
	}
	return stamp
}

func (c *certificate) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, certificateFault{"TLS_CERT_PATH", "and TLS_KEY_PATH cannot be used: " + err.Error()}
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair},
	}
	if c.clientCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, certificateFault{"TLS_CLIENT_CA_PATH", "cannot be read: " + err.Error()}
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, certificateFault{"TLS_CLIENT_CA_PATH", "holds no certificate"}
	}
	return config, nil
}
