package cli

import (
	"errors"
	"log/slog"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker"
	"caisson/settings"
)

const (
	// recordRetention is how long an ended command's output can be read.
	recordRetention = time.Hour
	// lostRetention is how long a handle that is gone still says why.
	lostRetention = 24 * time.Hour
	// recordLimit bounds how many ended commands are kept, whatever their age.
	recordLimit = 10000
)

// engineParts are what a manager is made of.
type engineParts struct {
	provider *docker.Provider
	spools   *sandbox.Spools
}

// prepare makes the parts. Nobody is asked yet: an engine that is down is no
// reason not to start. The error is settings.Faults, those given and what only
// the parts themselves could find; there are no parts then. observer may be nil.
func prepare(s settings.Settings, faults settings.Faults, log *slog.Logger, observer sandbox.Observer) (engineParts, error) {
	config := engineConfig(s.Docker, log)
	config.Observer = observer
	provider, err := docker.New(config)
	for _, part := range unjoin(err) {
		var e *sandbox.Error
		if !errors.As(part, &e) || e.Field == "" {
			return engineParts{}, part
		}
		faults = faults.With(e.Field, e.Text)
	}
	spools, err := sandbox.NewSpools(spoolLimits(s.Docker))
	if err != nil {
		faults = faults.With(settings.DockerPrefix+"SPOOL_DIR", "or, where it is not set, the system's temporary directory, takes no files: "+err.Error())
	}
	if len(faults) == 0 {
		return engineParts{provider: provider, spools: spools}, nil
	}
	if provider != nil {
		_ = provider.Close() // it has connected to nobody
	}
	return engineParts{}, faults
}

// check says what prepare would find, and keeps nothing.
func check(s settings.Settings, faults settings.Faults) error {
	parts, err := prepare(s, faults, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	return parts.provider.Close()
}

// manage starts a manager on the parts.
func (e engineParts) manage(s settings.Settings, log *slog.Logger, observer sandbox.Observer) *sandbox.Manager {
	return sandbox.NewManager(sandbox.Options{
		Provider: e.provider, Instance: s.Docker.Instance, Grace: s.Docker.InstanceGrace, Keep: keep(s), Policy: policy(s.Docker), Spools: e.spools, Limits: limits(s.Docker), Log: log, Observer: observer,
	})
}

// keep says which sessions stay when the server ends: those that the next server of the
// instance finds again. A stdio server's client ends with it, and its ephemeral sessions
// are nobody's then (D14).
func keep(s settings.Settings) sandbox.Keep {
	switch {
	case s.UniqueInstance:
		return sandbox.KeepNothing
	case s.MCP.Transport == "http":
		return sandbox.KeepAll
	default:
		return sandbox.KeepPersistent
	}
}

// unjoin lists the members of a joined error, however deep; of nil, none.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, member := range joined.Unwrap() {
		all = append(all, unjoin(member)...)
	}
	return all
}

func engineConfig(d settings.Docker, log *slog.Logger) docker.Config {
	return docker.Config{
		Host: d.Host, TLSCertPath: d.TLSCertPath, TLSKeyPath: d.TLSKeyPath, TLSCAPath: d.TLSCAPath, TLSVerify: d.TLSVerify,
		Instance: d.Instance, PullPolicy: docker.PullPolicy(d.PullPolicy), EgressNetwork: d.EgressNetwork,
		SeccompProfile: d.SeccompProfile, FileTransfer: docker.FileTransfer(d.FileTransfer),
		Runtime: d.Runtime, VMRuntime: d.VMRuntime, DiskMB: d.DiskMB,
		Probe:   docker.ProbeConfig{Enabled: d.ReadinessProbeEnabled, Image: d.ReadinessProbeImage, Timeout: d.ReadinessProbeTimeout},
		Version: readBuild().version, Log: log,
	}
}

func policy(d settings.Docker) sandbox.Policy {
	return sandbox.Policy{
		DefaultImage: d.DefaultImage, AllowedImages: d.AllowedImages,
		DefaultCPU: d.DefaultCPU, DefaultMemoryMB: d.DefaultMemoryMB, DefaultPids: d.DefaultPids,
		MaxCPU: d.MaxCPU, MaxMemoryMB: d.MaxMemoryMB, MaxPids: d.MaxPids,
		DefaultNetwork: d.DefaultNetwork, MaxNetwork: d.MaxNetwork,
		AllowPersistent: d.AllowPersistent, MinIsolation: d.MinIsolation, VMRuntime: d.VMRuntime != "",
		DefaultTTL: d.DefaultTTL, MaxTTL: d.MaxTTL,
	}
}

func limits(d settings.Docker) sandbox.Limits {
	return sandbox.Limits{
		Sessions: d.MaxSessions, PerOwner: d.MaxSessionsPerOwner, WorkspacesPerOwner: d.MaxWorkspacesPerOwner, ExecsPerSession: d.MaxExecsPerSession,
		Records: recordLimit, Retention: recordRetention, LostRetention: lostRetention,
		ReapInterval: d.ReapInterval, DefaultTimeout: d.ExecDefaultTimeout, MaxTimeout: d.ExecMaxTimeout,
	}
}

func spoolLimits(d settings.Docker) sandbox.SpoolLimits {
	return sandbox.SpoolLimits{Memory: d.SpoolMemoryKB << 10, Disk: d.SpoolDiskMB << 20, Total: d.SpoolTotalMB << 20, Dir: d.SpoolDir}
}
