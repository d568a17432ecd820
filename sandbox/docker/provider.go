package docker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"caisson/sandbox"
)

// oldestAPI is the oldest engine API that every feature we use is in: that of
// Docker 20.10.
const oldestAPI = "1.41"

// Bounds of single engine calls. They end a call on an engine that accepts and
// never answers; a caller's context may end it before.
const (
	pingLimit   = 5 * time.Second
	callLimit   = 20 * time.Second // questions, and small changes
	createLimit = 60 * time.Second // what makes the engine's disk work
	// cleanupLimit bounds the removal of what a failed call left. It runs on a
	// context of its own, since the caller's may be over.
	cleanupLimit = 15 * time.Second
)

// Provider makes sessions on one Docker engine. It implements sandbox.Provider.
type Provider struct {
	cfg     Config
	host    host
	dialer  *dialer
	api     *client.Client
	version apiVersion
	log     *slog.Logger
	seccomp string // the security option; empty for the engine's own

	images   images
	pulls    pulls
	networks networkCache
	proofs   proofs
	freezes  freezes
	disks    disks
	fence    fence

	// What outlives the call that began it (a pull, a look into an image) runs
	// in work, under life; Close ends it and waits.
	life    context.Context
	endLife context.CancelFunc
	work    sync.WaitGroup

	mu        sync.Mutex
	connected bool // the API's version is settled
	handshake *handshake
}

var (
	_ sandbox.Provider = (*Provider)(nil)
	_ sandbox.Killer   = (*Provider)(nil)
)

// New makes a provider. It asks nobody: no connection is made and no certificate
// read before the first call (CFG-2). Errors are about settings, one joined
// error for all of them, each part naming its setting.
func New(cfg Config) (*Provider, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = sandbox.Unobserved{}
	}
	p := &Provider{cfg: cfg, log: cfg.Log, fence: fence{turn: make(chan struct{}, 1)}, disks: disks{turn: make(chan struct{}, 1)}}
	if err := p.checkConfig(); err != nil {
		return nil, err
	}
	p.dialer = &dialer{host: p.host}
	if p.host.transport != transportPlain {
		p.dialer.identity = &identity{
			cert: cfg.TLSCertPath, key: cfg.TLSKeyPath, ca: cfg.TLSCAPath,
			serverOnly: p.host.transport == transportServer,
			serverName: p.host.name(), now: time.Now,
		}
	}
	var err error
	if p.api, err = newClient(p.dialer, userAgent(cfg), &p.version, p.stand); err != nil {
		return nil, err
	}
	p.life, p.endLife = context.WithCancel(context.Background()) // the provider's own life, no caller's
	if p.host.network == "tcp" && p.host.transport != transportMutual {
		p.log.Warn("the engine is dialled without a client identity: whoever reaches it owns its host (SANDBOX_DOCKER_TLS_VERIFY is false)", "host", p.host.String())
	}
	return p, nil
}

func userAgent(cfg Config) string { return "caisson/" + cfg.Version }

func (p *Provider) checkConfig() error {
	var hostErr, profileErr error
	p.host, hostErr = parseHost(p.cfg.Host, p.cfg.TLSVerify)
	p.seccomp, profileErr = seccompOption(p.cfg.SeccompProfile)
	return errors.Join(hostErr, profileErr, p.checkChoices(), p.checkEgress(), p.checkLimits())
}

// checkChoices fills the defaults of settings that have a closed set of values.
func (p *Provider) checkChoices() error {
	var errs []error
	switch p.cfg.PullPolicy {
	case "":
		p.cfg.PullPolicy = PullMissing
	case PullMissing, PullNever, PullAlways:
	default:
		errs = append(errs, badSetting("SANDBOX_DOCKER_PULL_POLICY", "is missing, never or always"))
	}
	switch p.cfg.FileTransfer {
	case "":
		p.cfg.FileTransfer = TransferAuto
	case TransferAuto, TransferExec, TransferArchive:
	default:
		errs = append(errs, badSetting("SANDBOX_DOCKER_FILE_TRANSFER", "is auto, exec or archive"))
	}
	return errors.Join(errs...)
}

// checkEgress refuses networks that are no network of containers: they would
// put a session on the engine's own host or into another container.
func (p *Provider) checkEgress() error {
	if p.cfg.EgressNetwork == "" {
		p.cfg.EgressNetwork = egressNetwork
	}
	switch name := p.cfg.EgressNetwork; {
	case name == "host", name == "none", name == "default", name == internalNetwork,
		strings.HasPrefix(name, "container:"), !networkNameForm.MatchString(name):
		return badSetting("SANDBOX_DOCKER_EGRESS_NETWORK", "names a bridge network of the engine")
	}
	return nil
}

func (p *Provider) checkLimits() error {
	var errs []error
	if p.cfg.Probe.Enabled && p.cfg.Probe.Image == "" {
		errs = append(errs, badSetting("SANDBOX_DOCKER_READINESS_PROBE_IMAGE", "is required with the probe on"))
	}
	if p.cfg.Probe.Enabled && p.cfg.Probe.Timeout <= 0 {
		errs = append(errs, badSetting("SANDBOX_DOCKER_READINESS_PROBE_TIMEOUT_SECONDS", "is a number of seconds above 0"))
	}
	if p.cfg.DiskMB < 0 {
		errs = append(errs, badSetting("SANDBOX_DOCKER_DISK_MB", "is a number of MiB, or 0 for no limit"))
	}
	return errors.Join(errs...)
}

// handshake is one attempt to settle the API's version, shared by all who wait.
type handshake struct {
	done chan struct{}
	err  error
}

// connect settles the API's version with the engine, once, and again after a
// connection broke. Methods call it before their first request: the client's own
// way ignores a failed negotiation and goes on with a version that the engine may
// not know.
func (p *Provider) connect(ctx context.Context) error {
	for again := false; ; again = true {
		h, joined := p.shake()
		if h == nil {
			return nil
		}
		select {
		case <-h.done:
		case <-ctx.Done():
			return p.failed("connect to the engine", ctx.Err())
		}
		// One that began before this call says nothing of the engine as it is now.
		if h.err == nil || !joined || again {
			return h.err
		}
	}
}

// shake joins the attempt that is under way, or begins one; nil where none is needed.
func (p *Provider) shake() (h *handshake, joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connected {
		return nil, false
	}
	if p.handshake != nil {
		return p.handshake, true
	}
	h = &handshake{done: make(chan struct{})}
	p.handshake = h
	p.work.Go(func() { p.shakeHands(h) })
	return h, false
}

func (p *Provider) shakeHands(h *handshake) {
	ctx, cancel := context.WithTimeout(p.life, pingLimit)
	defer cancel()
	h.err = p.negotiate(ctx)
	p.mu.Lock()
	p.connected, p.handshake = h.err == nil, nil
	p.mu.Unlock()
	close(h.done)
}

// Ping tells whether the engine answers (sandbox.Provider).
func (p *Provider) Ping(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	if _, err := p.api.Ping(ctx); err != nil {
		return p.failed("ping the engine", err)
	}
	return nil
}

// Close ends what is under way of its own (pulls) and frees connections (sandbox.Provider).
func (p *Provider) Close() error {
	p.endLife()
	p.work.Wait()
	if err := p.api.Close(); err != nil {
		return p.failed("close connections", err)
	}
	return nil
}

// cleanup returns a context for the removal of what a call leaves behind, alive
// when the caller's ctx is over, and bounded.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
}
