package settings

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"caisson/sandbox"
)

// checkRules holds values against one another and against what their tags
// cannot say. The forms of a host, a network and a profile are the provider's
// to check, since it is the one that reads them.
func (s *Settings) checkRules(faults *Faults) {
	s.checkHost(faults)
	s.raisePids(faults)
	s.checkCaps(faults)
	s.checkTimes(faults)
	s.checkNames(faults)
	s.checkIsolation(faults)
	s.checkSpool(faults)
	s.checkAddr(faults)
	s.checkMetrics(faults)
	s.checkEndpoint(faults)
}

// checkHost wants a host and takes none from anywhere else: not from
// DOCKER_HOST, not from a socket that happens to be there (CFG-2).
func (s *Settings) checkHost(faults *Faults) {
	const name = DockerPrefix + "HOST"
	if s.Docker.Host == "" && !faults.Has(name) {
		faults.add(name, "is required and has no default; it takes %s", s.field(name).takes())
	}
}

// checkCaps keeps every default at or below its ceiling; no cap at all is above
// any ceiling.
func (s *Settings) checkCaps(faults *Faults) {
	for _, cap := range []struct {
		name            string
		fallback, limit float64
	}{
		{"CPU", s.Docker.DefaultCPU, s.Docker.MaxCPU},
		{"MEMORY_MB", float64(s.Docker.DefaultMemoryMB), float64(s.Docker.MaxMemoryMB)},
		{"PIDS", float64(s.Docker.DefaultPids), float64(s.Docker.MaxPids)},
	} {
		fallback, limit := DockerPrefix+"DEFAULT_"+cap.name, DockerPrefix+"MAX_"+cap.name
		switch {
		case faults.Has(fallback, limit) || cap.limit == 0:
		case cap.fallback == 0:
			faults.add(fallback, "is 0, no cap, though %s is %s", limit, plain(cap.limit))
		case cap.fallback > cap.limit:
			faults.add(fallback, "is %s, above %s, which is %s", plain(cap.fallback), limit, plain(cap.limit))
		}
	}
	const fallback, limit = DockerPrefix + "DEFAULT_NETWORK", DockerPrefix + "MAX_NETWORK"
	if !faults.Has(fallback, limit) && s.Docker.DefaultNetwork.Looser(s.Docker.MaxNetwork) {
		faults.add(fallback, "is %s, looser than %s, which is %s", s.Docker.DefaultNetwork, limit, s.Docker.MaxNetwork)
	}
}

// raisePids lets a default that the operator has chosen stand: only a ceiling that was
// chosen too can be at odds with it.
func (s *Settings) raisePids(faults *Faults) {
	const fallback, limit = DockerPrefix + "DEFAULT_PIDS", DockerPrefix + "MAX_PIDS"
	d := &s.Docker
	if _, given := s.given[limit]; !given && !faults.Has(fallback) && (d.DefaultPids == 0 || d.DefaultPids > d.MaxPids) {
		d.MaxPids = d.DefaultPids
	}
}

func (s *Settings) checkTimes(faults *Faults) {
	d := s.Docker
	for _, pair := range []struct {
		low, high   string
		lower, over float64
	}{
		{"DEFAULT_TTL_SECONDS", "MAX_TTL_SECONDS", d.DefaultTTL.Seconds(), d.MaxTTL.Seconds()},
		{"EXEC_DEFAULT_TIMEOUT_SECONDS", "EXEC_MAX_TIMEOUT_SECONDS", d.ExecDefaultTimeout.Seconds(), d.ExecMaxTimeout.Seconds()},
	} {
		low, high := DockerPrefix+pair.low, DockerPrefix+pair.high
		if !faults.Has(low, high) && pair.lower > pair.over {
			faults.add(low, "is %s, above %s, which is %s", plain(pair.lower), high, plain(pair.over))
		}
	}
}

// The engine's own rules for names of objects, and what a label and the name
// of a lease can carry.
var (
	objectName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
)

func (s *Settings) checkNames(faults *Faults) {
	d := s.Docker
	for name, value := range map[string]string{"RUNTIME": d.Runtime, "VM_RUNTIME": d.VMRuntime} {
		s.want(faults, DockerPrefix+name, value, objectName.MatchString)
	}
	s.want(faults, DockerPrefix+"INSTANCE", d.Instance, instanceName.MatchString)
	for name, value := range map[string]string{"DEFAULT_IMAGE": d.DefaultImage, "TOOL_IMAGE": d.ToolImage, "READINESS_PROBE_IMAGE": d.ReadinessProbeImage} {
		s.want(faults, DockerPrefix+name, value, func(v string) bool {
			return !strings.HasPrefix(v, "-") && !strings.ContainsFunc(v, unicode.IsSpace)
		})
	}
	s.want(faults, MCPPrefix+"OWNER", s.MCP.Owner, func(v string) bool {
		return len(v) <= 128 && !strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) })
	})
	s.Docker.AllowedImages = s.list(faults, DockerPrefix+"ALLOWED_IMAGES", d.AllowedImages, func(v string) bool {
		_, err := path.Match(v, "") // one that is malformed would match nothing
		return err == nil && !strings.ContainsFunc(v, unicode.IsSpace)
	})
	s.MCP.AllowedOrigins = s.list(faults, MCPPrefix+"ALLOWED_ORIGINS", s.MCP.AllowedOrigins, isOrigin)
}

// isOrigin says whether v is what a browser sends as Origin. "*" and "null"
// are not: each would let any page in.
func isOrigin(v string) bool {
	u, err := url.Parse(v)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && v == u.Scheme+"://"+u.Host
}

func (s *Settings) checkIsolation(faults *Faults) {
	const name = DockerPrefix + "MIN_ISOLATION"
	if s.Docker.MinIsolation == sandbox.IsolationVM && s.Docker.VMRuntime == "" && !faults.Has(name) {
		faults.add(name, "is vm, which needs %sVM_RUNTIME to name an OCI runtime", DockerPrefix)
	}
}

func (s *Settings) checkSpool(faults *Faults) {
	const total, disk = DockerPrefix + "SPOOL_TOTAL_MB", DockerPrefix + "SPOOL_DISK_MB"
	if !faults.Has(total, disk) && s.Docker.SpoolTotalMB < s.Docker.SpoolDiskMB {
		faults.add(total, "is %d, less than one command's %s, which is %d", s.Docker.SpoolTotalMB, disk, s.Docker.SpoolDiskMB)
	}
	s.want(faults, DockerPrefix+"SPOOL_DIR", s.Docker.SpoolDir, filepath.IsAbs)
}

// checkAddr wants a host beside the port, since ":8811" listens everywhere and
// rarely means to, and principals where others can reach it.
func (s *Settings) checkAddr(faults *Faults) {
	const name = MCPPrefix + "ADDR"
	if faults.Has(name) {
		return
	}
	host, port, err := net.SplitHostPort(s.MCP.Addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" {
		faults.add(name, "takes %s, got %s", s.field(name).takes(), Shown(s.MCP.Addr))
		return
	}
	if s.MCP.Transport != "http" || loopback(host) {
		return
	}
	if s.MCP.PrincipalsFile == "" && !faults.Has(MCPPrefix+"PRINCIPALS_FILE") {
		faults.add(name, "is reachable from other machines, which needs %sPRINCIPALS_FILE to say who may call", MCPPrefix)
	}
	if s.Docker.Instance == "" {
		faults.add(DockerPrefix+"INSTANCE", "is required when %s is reachable from other machines", name)
	}
}

// checkMetrics wants the one address that metrics are read at: they are for
// whoever reaches it, so that it must be chosen, and none but theirs.
func (s *Settings) checkMetrics(faults *Faults) {
	const name = MCPPrefix + "METRICS_ADDR"
	s.want(faults, MCPPrefix+"AUDIT_FILE", s.MCP.AuditFile, filepath.IsAbs)
	if s.MCP.MetricsAddr == "" || faults.Has(name) {
		return
	}
	host, port, err := net.SplitHostPort(s.MCP.MetricsAddr)
	_, bad := strconv.ParseUint(port, 10, 16)
	ip, _ := netip.ParseAddr(host)
	switch {
	case err != nil || bad != nil || host == "" || ip.WithZone("").Unmap().IsUnspecified():
		faults.add(name, "takes %s, got %s", s.field(name).takes(), Shown(s.MCP.MetricsAddr))
	case s.MCP.Transport == "http" && s.MCP.MetricsAddr == s.MCP.Addr && port != "0":
		faults.add(name, "is %sADDR too; on loopback without principals /metrics is served there anyway", MCPPrefix)
	}
}

// OpenMetrics says whether /metrics is served on the endpoint itself: where only
// this machine reaches it and it asks nobody who they are.
func (m MCP) OpenMetrics() bool {
	host, _, err := net.SplitHostPort(m.Addr)
	return err == nil && loopback(host) && m.PrincipalsFile == "" && m.OIDCIssuer == "" && m.TLSClientCAPath == ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// want reports a value that is set and not as it should be.
func (s *Settings) want(faults *Faults, name, value string, good func(string) bool) {
	if value != "" && !faults.Has(name) && !good(value) {
		faults.add(name, "takes %s, got %s", s.field(name).takes(), Shown(value))
	}
}

// list trims the members of a list and wants each of them good and none empty.
func (s *Settings) list(faults *Faults, name string, values []string, good func(string) bool) []string {
	trimmed := make([]string, 0, len(values))
	for _, value := range values {
		value = strings.TrimSpace(value)
		if (value == "" || !good(value)) && !faults.Has(name) {
			faults.add(name, "takes %s, got %s", s.field(name).takes(), Shown(value))
		}
		trimmed = append(trimmed, value)
	}
	return trimmed
}

// field finds a variable of the table by name.
func (s *Settings) field(name string) field {
	for _, f := range s.fields() {
		if f.name == name {
			return f
		}
	}
	return field{}
}
