package cli

import (
	"cmp"
	"crypto/sha256"
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

// certificateEvery is how often one may look whether the files have changed.
const certificateEvery = time.Second

// certificate is the endpoint's own TLS: its certificate, and the authority that
// clients' certificates are verified against. The files are read again when they
// have changed; what cannot be used changes nothing, and the log says so.
type certificate struct {
	cert, key, clientCA string // clientCA may be empty
	log                 *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   [sha256.Size]byte // digest of the files' contents when they were read
	config *tls.Config
}

// openCertificate reads the files that the settings name; nil when they name
// none. The error is settings.Faults.
func openCertificate(m settings.MCP, log *slog.Logger) (*certificate, error) {
	if m.TLSCertPath == "" {
		return nil, nil
	}
	c := &certificate{cert: m.TLSCertPath, key: m.TLSKeyPath, clientCA: m.TLSClientCAPath, log: log}
	var wrong certificateFault
	found := c.files()
	config, err := found.config()
	if errors.As(err, &wrong) {
		return nil, settings.Faults(nil).With(settings.MCPPrefix+wrong.setting, wrong.text)
	}
	c.config, c.seen, c.looked = config, found.digest(), time.Now()
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

// current is what the files say, looked at once in certificateEvery, by handshakes
// and by requests alike. The same value stays for as long as they do not change: with a new one, connections that
// were resumed from before are verified anew.
func (c *certificate) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.config
	}
	c.looked = time.Now()
	found := c.files()
	digest := found.digest()
	if digest == c.seen {
		return c.config
	}
	c.seen = digest
	config, err := found.config()
	if err != nil {
		c.log.Error("the endpoint's certificate has changed and cannot be used; the one before stays in force", "error", err)
		return c.config
	}
	c.log.Info("the endpoint's certificate has been read again")
	c.config = config
	return config
}

// pemFiles is what the files of a certificate hold at one moment.
type pemFiles struct{ cert, key, clientCA pemFile }

type pemFile struct {
	named bool
	text  []byte
	err   error
}

// files reads the files. What is compared later are their contents: a file that was
// copied anew, touched or only read has not changed.
func (c *certificate) files() pemFiles {
	read := func(name string) (f pemFile) {
		if f.named = name != ""; f.named {
			f.text, f.err = os.ReadFile(name)
		}
		return f
	}
	return pemFiles{read(c.cert), read(c.key), read(c.clientCA)}
}

func (p pemFiles) digest() [sha256.Size]byte {
	all := sha256.New()
	for _, f := range []pemFile{p.cert, p.key, p.clientCA} {
		_, _ = fmt.Fprintln(all, len(f.text), f.err) // it never fails
		_, _ = all.Write(f.text)
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// config makes of the files what a handshake needs. The error is certificateFault.
func (p pemFiles) config() (*tls.Config, error) {
	err := cmp.Or(p.cert.err, p.key.err)
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.X509KeyPair(p.cert.text, p.key.text)
	}
	if err != nil {
		return nil, certificateFault{"TLS_CERT_PATH", "and TLS_KEY_PATH cannot be used: " + err.Error()}
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair},
	}
	if !p.clientCA.named {
		return config, nil
	}
	if p.clientCA.err != nil {
		return nil, certificateFault{"TLS_CLIENT_CA_PATH", "cannot be read: " + p.clientCA.err.Error()}
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(p.clientCA.text) {
		return nil, certificateFault{"TLS_CLIENT_CA_PATH", "holds no certificate"}
	}
	return config, nil
}
