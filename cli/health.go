package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"caisson/settings"
)

const healthTimeout = 5 * time.Second

func (p Process) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the HTTP server of the same settings on this host whether it is alive",
		Long: "Ask the HTTP server of the same settings on this host whether it is alive, and fail where it is not. It is the health check of the server's image,\n" +
			"which has no other program. It says nothing of the engine: for that there is /readyz.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.Load(p.Environ)
			if err != nil {
				return err
			}
			return p.health(cmd.Context(), s.MCP)
		},
	}
}

// health asks /healthz once. Over TLS the name is not checked, nor is a
// certificate shown: that the handshake goes as far as asking for one is life enough.
func (p Process) health(ctx context.Context, m settings.MCP) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return fmt.Errorf("SANDBOX_MCP_ADDR: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	addr := net.JoinHostPort(host, port)
	if m.TLSCertPath != "" {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("not alive: %w", err)
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{}).Do(request)
	if err != nil {
		return fmt.Errorf("not alive: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read or given up
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("not alive: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		text := "not alive: " + answer.Status
		if answer.StatusCode == http.StatusBadRequest {
			text += " to plain HTTP; where the server speaks TLS, set SANDBOX_MCP_TLS_CERT_PATH as it has it"
		}
		return errors.New(text)
	}
	_, err = p.Stdout.Write(text)
	return err
}
