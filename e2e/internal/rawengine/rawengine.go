// Package rawengine connects to the engine that the SANDBOX_DOCKER_ variables
// name, past Caisson, for programs that look at what Caisson has done there.
package rawengine

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"
)

// variables are the values by their names without the prefix.
type variables map[string]string

// file is the path that a variable gives, or the default one.
func (v variables) file(variable, name string) string {
	return cmp.Or(v[variable], "/certs/client/"+name)
}

// Connect reads the variables from environ (as of os.Environ) and makes a
// client. Nothing is sent yet. A variable that is given twice counts as it was
// given last.
func Connect(environ []string) (*client.Client, error) {
	v := variables{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if short, ours := strings.CutPrefix(name, "SANDBOX_DOCKER_"); ours {
				v[short] = value
			}
		}
	}
	host := v["HOST"]
	if host == "" {
		return nil, errors.New("SANDBOX_DOCKER_HOST names no engine")
	}
	if strings.HasPrefix(host, "/") {
		host = "unix://" + host
	}
	options := []client.Opt{client.WithAPIVersionNegotiation()}
	if !strings.HasPrefix(host, "unix://") && v["TLS_VERIFY"] != "false" {
		tls, err := tlsconfig.Client(tlsconfig.Options{
			CAFile: v.file("TLS_CA_PATH", "ca.pem"), CertFile: v.file("TLS_CERT_PATH", "cert.pem"), KeyFile: v.file("TLS_KEY_PATH", "key.pem"),
			ExclusiveRootPools: true,
		})
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithHTTPClient(&http.Client{Transport: &http.Transport{TLSClientConfig: tls}}))
	}
	return client.NewClientWithOpts(append(options, client.WithHost(host))...)
}
