package docker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// identity makes the TLS configuration from files, and again when they change,
// so that a certificate is renewed without a restart. Safe for concurrent use.
type identity struct {
	cert, key, ca string
	serverOnly    bool   // present no certificate; verify by ca, or the system's roots where there is none (D6)
	serverName    string // what the server's certificate must be for
	now           func() time.Time

	mu     sync.Mutex
	stamps [3]fileStamp
	loaded *tls.Config
	leaf   *x509.Certificate
}

// fileStamp tells a file from its successor.
type fileStamp struct {
	modified time.Time
	size     int64
	missing  bool
}

// identityError is an identity that cannot be used. It names paths and dates,
// and never what is in a file (CON-6).
type identityError struct {
	text string
	err  error
}

func (e *identityError) Error() string { return e.text }
func (e *identityError) Unwrap() error { return e.err }

// config returns the configuration as the files have it now.
func (i *identity) config() (*tls.Config, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	stamps := [3]fileStamp{stampOf(i.ca)}
	if !i.serverOnly {
		stamps[1], stamps[2] = stampOf(i.cert), stampOf(i.key)
	}
	if i.loaded == nil || stamps != i.stamps {
		if err := i.load(); err != nil {
			i.loaded = nil
			return nil, err
		}
		i.stamps = stamps
	}
	if err := i.checkDates(); err != nil {
		return nil, err
	}
	return i.loaded, nil
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{missing: true}
	}
	return fileStamp{modified: info.ModTime(), size: info.Size()}
}

func (i *identity) load() error {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: i.serverName,
		// Every exec opens a connection of its own; resuming saves the
		// handshake's signatures.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	var err error
	if c.RootCAs, err = i.loadCA(); err != nil {
		return err
	}
	i.leaf = nil
	if !i.serverOnly {
		pair, err := tls.LoadX509KeyPair(i.cert, i.key)
		if err != nil {
			return i.unusable(err)
		}
		i.leaf = pair.Leaf
		c.Certificates = []tls.Certificate{pair}
	}
	i.loaded = c
	return nil
}

// loadCA reads the roots; nil stands for the system's.
func (i *identity) loadCA() (*x509.CertPool, error) {
	pem, err := os.ReadFile(i.ca)
	if i.serverOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, i.unusable(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, i.unusable(errors.New("the CA file holds no certificate"))
	}
	return pool, nil
}

// unusable names the three paths (CON-6). The causes that crypto/tls and os give
// name files and forms, never content.
func (i *identity) unusable(err error) error {
	return &identityError{
		text: fmt.Sprintf("cannot load the engine's client identity from SANDBOX_DOCKER_TLS_CERT_PATH=%s, SANDBOX_DOCKER_TLS_KEY_PATH=%s and SANDBOX_DOCKER_TLS_CA_PATH=%s: %s",
			i.cert, i.key, i.ca, loadFailure(err)),
		err: err,
	}
}

// loadFailure puts a load's failure into words of ours.
func loadFailure(err error) string {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, &path):
		return path.Path + " does not exist"
	case errors.Is(err, fs.ErrPermission) && errors.As(err, &path):
		return path.Path + " may not be read"
	case errors.As(err, &path):
		return path.Path + " cannot be read"
	default:
		return err.Error()
	}
}

// checkDates tells an expired certificate of ours here, with its date, where
// the engine would only say that it is bad (bug EN-04).
func (i *identity) checkDates() error {
	if i.leaf == nil {
		return nil
	}
	switch now := i.now(); {
	case now.After(i.leaf.NotAfter):
		return &identityError{text: fmt.Sprintf("the client certificate %s expired on %s", i.cert, day(i.leaf.NotAfter))}
	case now.Before(i.leaf.NotBefore):
		return &identityError{text: fmt.Sprintf("the client certificate %s is not valid before %s; is this machine's clock right?", i.cert, day(i.leaf.NotBefore))}
	}
	return nil
}

// expiry is when the identity ends; false where there is none.
func (i *identity) expiry() (time.Time, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.leaf == nil {
		return time.Time{}, false
	}
	return i.leaf.NotAfter, true
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
