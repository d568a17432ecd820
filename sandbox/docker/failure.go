package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// failureClass says in one clause why a connection was not made or broke: what
// happened, which side's certificate it is about, and its date where that is
// the matter (CON-7, bug EN-04). It repeats nothing that a server sent but
// names and dates of its certificate.
func failureClass(err error) string {
	if text := certificateClass(err); text != "" {
		return text
	}
	var dns *net.DNSError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		return "its name does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (refused)"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not open that socket"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it"
	case errors.As(err, &record):
		return "it does not speak TLS"
	case isTimeout(err):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "it closed the connection"
	default:
		return "the connection failed"
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// certificateClass is failureClass for what concerns certificates; empty when
// the error does not.
func certificateClass(err error) string {
	var (
		invalid  x509.CertificateInvalidError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		if strings.Contains(invalid.Detail, "is before") {
			return "the server's certificate is not valid before " + day(invalid.Cert.NotBefore) + "; is this machine's clock right?"
		}
		return "the server's certificate expired on " + day(invalid.Cert.NotAfter)
	case errors.As(err, &unknown):
		return "the server's certificate is not signed by the CA in SANDBOX_DOCKER_TLS_CA_PATH"
	case errors.As(err, &hostname):
		return "the server's certificate is not for this host name or address"
	case errors.As(err, &invalid):
		return "the server's certificate is not usable"
	}
	return alertClass(err.Error())
}

// alertClass reads the alert by which a server refuses our certificate. The
// standard library gives it as a text alone.
func alertClass(text string) string {
	_, alert, found := strings.Cut(text, "remote error: tls: ")
	switch {
	case !found:
		return ""
	case strings.HasPrefix(alert, "expired certificate"):
		return "the server refuses our client certificate as expired; are both clocks right?"
	case strings.HasPrefix(alert, "unknown certificate authority"):
		return "the server does not know the CA of our client certificate"
	case strings.HasPrefix(alert, "certificate required"):
		return "the server asks for a client certificate"
	case strings.HasPrefix(alert, "bad certificate"), strings.HasPrefix(alert, "unsupported certificate"),
		strings.HasPrefix(alert, "revoked certificate"), strings.HasPrefix(alert, "unknown certificate"):
		return "the server refuses our client certificate"
	default:
		return "the server refused the TLS handshake"
	}
}
