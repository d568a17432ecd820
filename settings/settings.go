package settings

import (
	"time"

	"caisson/sandbox"
)

// The prefixes of all variables (CFG-1).
const (
	DockerPrefix = "SANDBOX_DOCKER_"
	MCPPrefix    = "SANDBOX_MCP_"
)

// Settings is everything the environment says, read once. Copying it is cheap
// and nothing changes it after Load, so it may be read from any goroutine.
//
// A variable that is absent or empty has its default. Numbers of cores,
// megabytes and processes are 0 where there is no cap.
type Settings struct {
	Docker Docker
	MCP    MCP

	// Warnings are sentences about variables that have no effect, for the log.
	Warnings []string

	// UniqueInstance says that the instance's name was made for this server alone: no other
	// can come back under it.
	UniqueInstance bool

	given map[string]string // variables of ours that are set, as they were set
}

// Docker is the SANDBOX_DOCKER_ group: the engine, and what a session may be.
//
// Tags: env is the name behind the prefix, envDefault the default, doc the
// meaning, min and max the range of a number ("0|6": zero, or 6 and more),
// oneof the words that a string may be, takes what a string should look like,
// shown the words that stand for a default which is found out at start.
type Docker struct {
	Host        string `env:"HOST" shown:"none: required" takes:"unix:///path, an absolute socket path, tcp://host[:port], http://host[:port] or https://host[:port]" doc:"The engine: unix:///path, a bare absolute socket path, tcp://, http:// or https://. A host without a port is dialled on 2376 over TLS and on 2375 plain."`
	TLSCertPath string `env:"TLS_CERT_PATH" envDefault:"/certs/client/cert.pem" takes:"the path of a file" doc:"Client certificate for the engine. Re-read when the file changes."`
	TLSKeyPath  string `env:"TLS_KEY_PATH" envDefault:"/certs/client/key.pem" takes:"the path of a file" doc:"Key of the client certificate."`
	TLSCAPath   string `env:"TLS_CA_PATH" envDefault:"/certs/client/ca.pem" takes:"the path of a file" doc:"Authority that the engine's certificate is verified against."`
	TLSVerify   bool   `env:"TLS_VERIFY" envDefault:"true" doc:"Network hosts are dialled with mutual TLS. False: tcp:// and http:// are dialled plain, https:// without a client identity; warned about at start."`

	DefaultImage  string   `env:"DEFAULT_IMAGE" envDefault:"caisson-session:latest" takes:"the name of an image" doc:"Image of a session that names none."`
	AllowedImages []string `env:"ALLOWED_IMAGES" shown:"any image" takes:"patterns of image names, separated by commas" doc:"Patterns, separated by commas, that a session's image must match."`

	DefaultCPU      float64 `env:"DEFAULT_CPU" envDefault:"1" min:"0|0.01" max:"4096" doc:"Cores for a session that names none; 0 is no cap."`
	DefaultMemoryMB int64   `env:"DEFAULT_MEMORY_MB" envDefault:"1024" min:"0|6" max:"67108864" doc:"Memory in MiB for a session that names none; 0 is no cap."`
	DefaultPids     int64   `env:"DEFAULT_PIDS" envDefault:"512" min:"0|16" max:"4194304" doc:"Processes and threads for a session that names none; 0 is no cap."`
	MaxCPU          float64 `env:"MAX_CPU" envDefault:"0" min:"0|0.01" max:"4096" doc:"Most cores that a session may ask for; 0 is no ceiling."`
	MaxMemoryMB     int64   `env:"MAX_MEMORY_MB" envDefault:"0" min:"0|6" max:"67108864" doc:"Most memory in MiB that a session may ask for; 0 is no ceiling."`
	MaxPids         int64   `env:"MAX_PIDS" envDefault:"4096" min:"0|16" max:"4194304" doc:"Most processes and threads that a session may ask for; 0 is no ceiling. Where it is not set, a greater DEFAULT_PIDS, or none, is the ceiling."`

	DefaultNetwork sandbox.Network `env:"DEFAULT_NETWORK" envDefault:"none" oneof:"none internal egress" doc:"Network tier of a session that names none: none, internal or egress."`
	MaxNetwork     sandbox.Network `env:"MAX_NETWORK" envDefault:"egress" oneof:"none internal egress" doc:"The loosest tier that a session may ask for."`
	EgressNetwork  string          `env:"EGRESS_NETWORK" envDefault:"tai-sbx-egress" takes:"the name of a bridge network on the engine" doc:"The engine's network behind the egress tier."`

	SeccompProfile string `env:"SECCOMP_PROFILE" envDefault:"builtin" takes:"builtin, engine or the absolute path of a profile" doc:"System-call filter of every container: our own, the engine's default, or the absolute path of a JSON profile."`
	FileTransfer   string `env:"FILE_TRANSFER" envDefault:"auto" oneof:"auto exec archive" doc:"How files get in and out of a running session: by commands inside it, by the engine's archive calls, or by commands where the image has them."`
	DiskMB         int64  `env:"DISK_MB" envDefault:"0" min:"0|16" max:"1073741824" doc:"Disk in MiB for a session: its root file system and its workspace. A quota where the engine has them, else the session is measured and ended past it; 0 is no cap."`

	AllowPersistent bool              `env:"ALLOW_PERSISTENT" envDefault:"true" doc:"Sessions may have workspaces that outlive them."`
	MinIsolation    sandbox.Isolation `env:"MIN_ISOLATION" envDefault:"container" oneof:"container vm" doc:"The least that must stand between a session and the engine's host: container or vm."`
	VMRuntime       string            `env:"VM_RUNTIME" takes:"the name of an OCI runtime on the engine" doc:"OCI runtime behind isolation vm. Without one, vm is refused."`
	Runtime         string            `env:"RUNTIME" shown:"the engine's own" takes:"the name of an OCI runtime on the engine" doc:"OCI runtime of every session (runsc, crun, kata). Refused at start when the engine does not have it."`

	PullPolicy            string        `env:"PULL_POLICY" envDefault:"missing" oneof:"missing never always" doc:"When an image is pulled: missing, never or always."`
	ReadinessProbeEnabled bool          `env:"READINESS_PROBE_ENABLED" envDefault:"false" doc:"Prove the engine's egress firewall before each session, and refuse the session otherwise."`
	ReadinessProbeImage   string        `env:"READINESS_PROBE_IMAGE" envDefault:"busybox:latest" takes:"the name of an image" doc:"Image of the probe."`
	ReadinessProbeTimeout time.Duration `env:"READINESS_PROBE_TIMEOUT_SECONDS" envDefault:"30" min:"0.05" max:"600" doc:"Time for the whole probe."`

	DefaultTTL   time.Duration `env:"DEFAULT_TTL_SECONDS" envDefault:"3600" min:"1" max:"31536000" doc:"Idle time after which a session that names none is removed."`
	MaxTTL       time.Duration `env:"MAX_TTL_SECONDS" envDefault:"86400" min:"1" max:"31536000" doc:"Longest idle time that a session may ask for."`
	ReapInterval time.Duration `env:"REAP_INTERVAL_SECONDS" envDefault:"30" min:"0.1" max:"86400" doc:"Time between two sweeps for idle sessions."`

	ExecDefaultTimeout time.Duration `env:"EXEC_DEFAULT_TIMEOUT_SECONDS" envDefault:"300" min:"0.1" max:"31536000" doc:"Time a command may run when its call names none."`
	ExecMaxTimeout     time.Duration `env:"EXEC_MAX_TIMEOUT_SECONDS" envDefault:"86400" min:"0.1" max:"31536000" doc:"Longest time that a call may ask for."`

	SpoolMemoryKB int64  `env:"SPOOL_MEMORY_KB" envDefault:"256" min:"4" max:"1048576" doc:"Room in memory in KiB for the output of a command, before it goes to disk: half of it for stdout, half for stderr."`
	SpoolDiskMB   int64  `env:"SPOOL_DISK_MB" envDefault:"64" min:"1" max:"1048576" doc:"Room on disk in MiB for the output of a command once memory is full: half of it for stdout, half for stderr. A stream that prints more keeps its head and its tail, a quarter of the room each (with 64: the first and the last 16 MiB), and loses what lies between."`
	SpoolTotalMB  int64  `env:"SPOOL_TOTAL_MB" envDefault:"1024" min:"1" max:"16777216" doc:"Output of all commands together, in MiB; the oldest ended one goes first."`
	SpoolDir      string `env:"SPOOL_DIR" shown:"the system's" takes:"the absolute path of a directory" doc:"Directory of the temporary files that keep output."`

	MaxSessions           int `env:"MAX_SESSIONS" envDefault:"64" min:"1" max:"100000" doc:"Sessions of this server at one time."`
	MaxSessionsPerOwner   int `env:"MAX_SESSIONS_PER_OWNER" envDefault:"16" min:"1" max:"100000" doc:"Sessions of one owner at one time."`
	MaxWorkspacesPerOwner int `env:"MAX_WORKSPACES_PER_OWNER" envDefault:"64" min:"0" max:"100000" doc:"Persistent workspaces of one owner, whether a session holds them or not; 0 is no bound."`
	MaxExecsPerSession    int `env:"MAX_EXECS_PER_SESSION" envDefault:"32" min:"1" max:"10000" doc:"Commands that run in one session at one time."`

	Instance      string        `env:"INSTANCE" shown:"the host's name; on stdio unique" takes:"a name of at most 63 letters, digits, dots, dashes and underscores" doc:"Whose sessions these are, on an engine with several servers."`
	InstanceGrace time.Duration `env:"INSTANCE_GRACE_SECONDS" envDefault:"120" min:"10" max:"86400" doc:"How long another instance's lease must have run out before its sessions are taken for abandoned."`

	ToolImage    string        `env:"TOOL_IMAGE" envDefault:"caisson-tools:latest" takes:"the name of an image" doc:"Image of the tool executors."`
	ExecutorMode string        `env:"EXECUTOR_MODE" envDefault:"warm" oneof:"warm ephemeral" doc:"Tool executors keep one container (warm) or make one for each call (ephemeral)."`
	IdleTTL      time.Duration `env:"IDLE_TTL_SECONDS" envDefault:"300" min:"1" max:"31536000" doc:"Idle time after which a warm tool container is removed."`
	NetworkMode  string        `env:"NETWORK_MODE" envDefault:"bridge" oneof:"none internal egress bridge" doc:"Network of tool containers: none, internal, egress, or bridge, another word for egress."`
}

// MCP is the SANDBOX_MCP_ group: the face towards clients. Its tags are those
// of Docker.
type MCP struct {
	Transport string `env:"TRANSPORT" envDefault:"stdio" oneof:"stdio http" doc:"stdio, or http: Streamable HTTP on /mcp, SSE on /sse and /message."`
	Addr      string `env:"ADDR" envDefault:"127.0.0.1:8811" takes:"host:port; 127.0.0.1:8811 is this machine alone, 0.0.0.0:8811 every address" doc:"Where http listens. Anything but loopback needs principals."`

	TLSCertPath     string `env:"TLS_CERT_PATH" takes:"the path of a file" doc:"The endpoint's own certificate."`
	TLSKeyPath      string `env:"TLS_KEY_PATH" takes:"the path of a file" doc:"Key of the endpoint's certificate."`
	TLSClientCAPath string `env:"TLS_CLIENT_CA_PATH" takes:"the path of a file" doc:"Authority of client certificates; with it, clients must show one."`
	PublicURL       string `env:"PUBLIC_URL" shown:"as each request says" takes:"an http:// or https:// address without a path" doc:"How clients reach the endpoint, where a proxy stands before it; told to those who look for the issuer."`

	PrincipalsFile string   `env:"PRINCIPALS_FILE" takes:"the path of a file" doc:"Who may call: names, hashes of bearer tokens, quotas, ceilings, allowed tools."`
	OIDCIssuer     string   `env:"OIDC_ISSUER" takes:"an https:// address" doc:"Accept the tokens of this issuer."`
	OIDCAudience   string   `env:"OIDC_AUDIENCE" takes:"the audience that tokens must name" doc:"Audience that those tokens must name."`
	AllowedHosts   []string `env:"ALLOWED_HOSTS" shown:"any; on loopback, loopback names" takes:"names such as caisson.example.com, with or without a port, separated by commas" doc:"Names the endpoint is reached by, separated by commas; others get 403."`
	AllowedOrigins []string `env:"ALLOWED_ORIGINS" shown:"no origin" takes:"origins such as https://app.example.com, separated by commas" doc:"Origins of browsers that may call, separated by commas; others get 403, but for the address that the endpoint is reached by itself: with TLS of our own https alone, else with either scheme, since a proxy may speak TLS."`

	Manifest         string `env:"MANIFEST" shown:"the built-in tools alone" takes:"the path of a file" doc:"Manifest with tools, toolkits, agents and the execution policy. Never looked for: only this path is read."`
	Owner            string `env:"OWNER" envDefault:"local" takes:"a name of at most 128 printable characters" doc:"Owner of the sessions on stdio, and on http without principals."`
	AllowLocal       bool   `env:"ALLOW_LOCAL" envDefault:"false" doc:"Let the execution policy run tools as processes of this host."`
	AllowWeakerTools bool   `env:"ALLOW_WEAKER_TOOLS" envDefault:"false" doc:"Let the execution policy loosen the hardening of tool containers."`

	MaxBodyMB                int64 `env:"MAX_BODY_MB" envDefault:"32" min:"1" max:"1024" doc:"Largest request body in MiB."`
	MaxConnections           int   `env:"MAX_CONNECTIONS" envDefault:"4096" min:"1" max:"1000000" doc:"Connections to the endpoint at one time; one more is closed."`
	MaxConnectionsPerAddress int   `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"1024" min:"1" max:"1000000" doc:"Connections from one address, or one IPv6 network of 64 bits."`
	RatePerMinute            int   `env:"RATE_PER_MINUTE" envDefault:"600" min:"1" max:"1000000" doc:"Requests that one principal may make in a minute."`

	MetricsAddr string `env:"METRICS_ADDR" takes:"host:port, with the one address or name to listen on" doc:"Where /metrics is served, to anyone who reaches it; empty: nowhere, or on ADDR where that is loopback and has no principals."`
	AuditFile   string `env:"AUDIT_FILE" takes:"the absolute path of a file" doc:"File that a JSON line is appended to for each call; opened again at SIGHUP. Empty: the records go to the log."`

	LogLevel  string `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"debug, info, warn or error."`
	LogFormat string `env:"LOG_FORMAT" envDefault:"auto" oneof:"auto text json" doc:"text, json, or auto: text on a terminal and JSON elsewhere. Always on standard error."`
}
