package mcp

import (
	"sort"
	"time"

	"caisson/sandbox"
)

// sessionView is a session as clients see it.
type sessionView struct {
	SessionID     string            `json:"session_id" about:"Handle of the session."`
	Image         string            `json:"image" about:"As asked for."`
	ImageID       string            `json:"image_id" about:"What the engine resolved it to."`
	Network       string            `json:"network" enum:"none,internal,egress" about:"What it can reach."`
	Durability    string            `json:"durability" enum:"ephemeral,persistent" about:"Whether its workspace outlives it."`
	WorkspaceKey  string            `json:"workspace_key,omitempty" about:"Name of a persistent workspace."`
	WorkspacePath string            `json:"workspace_path" about:"Where relative paths start."`
	CPU           *float64          `json:"cpu,omitempty" about:"Cap, in cores."`
	MemoryMB      *int64            `json:"memory_mb,omitempty" about:"Cap, in MiB."`
	Pids          *int64            `json:"pids,omitempty" about:"Cap on processes and threads."`
	EnvNames      []string          `json:"env_names" about:"Names of its environment variables; values are never shown."`
	Labels        map[string]string `json:"labels" about:"As given."`
	CreatedAt     time.Time         `json:"created_at" about:"When it was made."`
	ExpiresAt     time.Time         `json:"expires_at" about:"When it ends if it stays idle."`
	State         string            `json:"state" enum:"creating,running,stopped,lost" about:"How it stands."`
	RunningExecs  int               `json:"running_execs" about:"Commands that run in it now."`
	Notes         []note            `json:"notes" about:"What else to know."`
}

func viewOf(i sandbox.Info) sessionView {
	v := sessionView{
		SessionID: i.ID, Image: i.Image, ImageID: i.ImageID, Network: string(i.Network), Durability: string(i.Durability),
		WorkspaceKey: i.WorkspaceKey, WorkspacePath: i.WorkspacePath, EnvNames: i.EnvNames, Labels: i.Labels,
		CreatedAt: i.CreatedAt.UTC().Truncate(time.Second), ExpiresAt: i.ExpiresAt.UTC().Truncate(time.Second),
		State: string(i.State), RunningExecs: i.RunningExecs, Notes: notesOf(i.Notes),
		CPU: notZero(i.CPU), MemoryMB: notZero(i.MemoryMB), Pids: notZero(i.Pids),
	}
	if v.EnvNames == nil {
		v.EnvNames = []string{}
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	sort.Strings(v.EnvNames)
	return v
}

func notZero[T int64 | float64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

// sessionResult is a session as the whole result of a tool.
type sessionResult struct {
	sessionView
}

func networkField(dst **string) field {
	return textField("network", dst, "What it can reach: nothing, other sessions' network without a way out, or the internet. Default: the server's, mostly none.").
		oneOf(string(sandbox.NetworkNone), string(sandbox.NetworkInternal), string(sandbox.NetworkEgress))
}
