// Command faultproxy stands between a server and its engine and breaks what its rules
// say. It is for tests that meet the built server: they start it, and talk to it in
// lines.
//
//	faultproxy -engine tcp://HOST:PORT -cert DIR -out DIR [-listen 127.0.0.1:0] [-rules FILE]
//
// -cert holds the engine's client identity (ca.pem, cert.pem, key.pem), -out takes the
// proxy's own: ca.pem, client-cert.pem and client-key.pem are what a server needs. The
// first line on standard output is "listening ADDRESS". Each line on standard input is
// a command, each is answered by "ok", with a word where there is one, or by "error"
// and the reason:
//
//	rule METHOD PATH TERMS   adds a failpoint, see enginetest.Rule
//	clear                    takes all rules away
//	break                    resets every connection; answers how many
//	freeze, thaw             holds every byte back; lets them go on
//	open                     how many connections there are
//	calls                    how many calls there were, and then one a line: time,
//	                         method, path, status of the engine's answer, what was done
//	forget                   empties that record
//
// The end of its standard input ends it.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"caisson/sandbox/docker/internal/enginetest"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "faultproxy:", err)
		os.Exit(1)
	}
}

// run serves until in ends.
func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("faultproxy", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen at")
	engine := flags.String("engine", "", "the engine, tcp://HOST:PORT")
	cert := flags.String("cert", "", "folder of the engine's client identity")
	own := flags.String("out", "", "folder for the proxy's own certificates")
	rules := flags.String("rules", "", "file of rules, one a line")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dial, err := dialer(*engine, *cert)
	if err != nil {
		return err
	}
	if *own == "" {
		return errors.New("-out is missing")
	}
	proxy, err := enginetest.StartProxy(*own, *listen, dial)
	if err != nil {
		return err
	}
	defer proxy.Close()
	if *rules != "" {
		if err := load(proxy, *rules); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(out, "listening", proxy.Addr); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, err := command(proxy, lines.Text())
		if err != nil {
			text = "error " + err.Error()
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return lines.Err()
}

func load(proxy *enginetest.Proxy, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	rules, err := enginetest.ParseRules(file)
	if err != nil {
		return err
	}
	proxy.Add(rules...)
	return nil
}

// dialTime bounds a connection to the engine, so that a cut link ends the proxy's
// share of a call as it would end a caller's own.
const dialTime = 10 * time.Second

// dialer connects to the engine with its client identity.
func dialer(engine, dir string) (func() (net.Conn, error), error) {
	at, err := url.Parse(engine)
	if err != nil || at.Scheme != "tcp" || at.Port() == "" {
		return nil, fmt.Errorf("-engine %q: not tcp://HOST:PORT", engine)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("-cert: no certificate in ca.pem")
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: at.Hostname(), MinVersion: tls.VersionTLS12}
	return func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime) // the caller's end is seen once there is a connection
		defer cancel()
		// The same as a server's own: what it would notice of the link, it is told by us.
		plain := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}
		return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, "tcp", at.Host)
	}, nil
}

// command does what a line says and returns the answer to it.
func command(proxy *enginetest.Proxy, line string) (string, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch name {
	case "rule":
		rule, err := enginetest.ParseRule(rest)
		if err != nil {
			return "", err
		}
		proxy.Add(rule)
	case "clear":
		proxy.Clear()
	case "break":
		return fmt.Sprint("ok ", proxy.Break()), nil
	case "freeze":
		proxy.Freeze()
	case "thaw":
		proxy.Thaw()
	case "open":
		return fmt.Sprint("ok ", proxy.Open()), nil
	case "calls":
		calls := proxy.Record()
		var text strings.Builder
		fmt.Fprintf(&text, "ok %d", len(calls))
		for _, c := range calls {
			fmt.Fprintf(&text, "\n%s %s %s %d %s", c.At.Format(time.RFC3339Nano), c.Method, c.Path, c.Status, c.Done)
		}
		return text.String(), nil
	case "forget":
		proxy.Forget()
	default:
		return "", fmt.Errorf("no command %q", name)
	}
	return "ok", nil
}
