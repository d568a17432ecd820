// Package enginetest plays engines that a real one cannot be made to be on
// demand: with wrong certificates, with answers that get lost, with streams that
// are cut or come byte by byte. All of them listen behind real TLS on loopback,
// since the way an exec's stream is attached bypasses an http.RoundTripper.
package enginetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PKI is a CA and what it has signed, as files.
type PKI struct {
	Dir  string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	Pool *x509.CertPool
}

// NewPKI makes a CA in a folder of the test's.
func NewPKI(t *testing.T) *PKI {
	t.Helper()
	p, err := MakePKI(t.TempDir())
	must(t, err)
	return p
}

// MakePKI makes a CA in a folder that is there. What it signs is valid for an hour.
func MakePKI(dir string) (*PKI, error) {
	p := &PKI{Dir: dir, Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, p.key.Public(), p.key)
	if err != nil {
		return nil, err
	}
	if p.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.Pool.AddCert(p.ca)
	return p, writePEM(p.Path("ca.pem"), "CERTIFICATE", der)
}

// Path is the path of a file of the PKI's: ca.pem, NAME-cert.pem, NAME-key.pem.
func (p *PKI) Path(name string) string { return filepath.Join(p.Dir, name) }

// Issue signs a certificate for a name, for 127.0.0.1 as a server and as a
// client, valid from and until these times, and writes it and its key.
func (p *PKI) Issue(t *testing.T, name string, from, until time.Time, addresses ...string) tls.Certificate {
	t.Helper()
	pair, err := p.issue(name, from, until, addresses...)
	must(t, err)
	return pair
}

// Valid issues a certificate that is valid now.
func (p *PKI) Valid(t *testing.T, name string) tls.Certificate {
	t.Helper()
	pair, err := p.valid(name)
	must(t, err)
	return pair
}

func (p *PKI) valid(name string) (tls.Certificate, error) {
	return p.issue(name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

func (p *PKI) issue(name string, from, until time.Time, addresses ...string) (tls.Certificate, error) {
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, a := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(a))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := writePEM(p.Path(name+"-cert.pem"), "CERTIFICATE", der); err != nil {
		return tls.Certificate{}, err
	}
	if err := writePEM(p.Path(name+"-key.pem"), "PRIVATE KEY", keyDER); err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(p.Path(name+"-cert.pem"), p.Path(name+"-key.pem"))
}

// Server is a server's configuration that asks for a client certificate of the
// PKI's, like an engine under tlsverify.
func (p *PKI) Server(pair tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: p.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
