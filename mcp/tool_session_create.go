package mcp

import (
	"context"

	"caisson/sandbox"
)

type sessionCreateInput struct {
	image        *string
	network      *string
	durability   *string
	workspaceKey *string
	isolation    *string
	cpu          *float64
	memoryMB     *int64
	pids         *int64
	env          map[string]string
	labels       map[string]string
	ttl          *int64
}

func (in *sessionCreateInput) fields() []field {
	return []field{
		nameField("image", &in.image, "The container image. Default: the server's."),
		networkField(&in.network),
		textField("durability", &in.durability, "ephemeral: the workspace goes with the session. persistent: it is kept under workspace_key.").
			oneOf(string(sandbox.Ephemeral), string(sandbox.Persistent)),
		nameField("workspace_key", &in.workspaceKey, "Name of a workspace that is kept between sessions; means persistent. Letters, digits, _ and -, up to 64."),
		textField("isolation", &in.isolation, "The least that must stand between the session and the engine's host. Default: the server's.").
			oneOf(string(sandbox.IsolationContainer), string(sandbox.IsolationVM)),
		numberField("cpu", &in.cpu, "How many cores it may use, such as 0.5."),
		intField("memory_mb", &in.memoryMB, "How much memory it may use, in MiB."),
		intField("pids", &in.pids, "How many processes and threads it may have."),
		mapField("env", &in.env, "Environment variables of every command in it. Values are kept secret."),
		mapField("labels", &in.labels, "Labels of your own, shown by session_list: at most 64, of 16 KiB together."),
		intField("ttl_seconds", &in.ttl, "It ends when it has been idle for this long. Default: the server's, mostly an hour.").atLeast(1),
	}
}

func (s *Server) sessionCreateTool() tool {
	return define[sessionCreateInput, sessionResult](about{
		name: "session_create", title: "Make a session",
		description: "Makes a sandbox session: a container of its own with a workspace, and returns its session_id for the other tools. " +
			"Needed only for something else than the default session: another image, network access, more memory, environment variables, or a workspace that is kept (workspace_key). " +
			"Takes about a second, longer when the image must be pulled first. Each session uses up quota until session_destroy or the end of its idle time. " +
			"Asking again for a workspace that one of your sessions holds returns that session when all else is the same.",
		openWorld: true,
	}, (*sessionCreateInput).fields, s.sessionCreate)
}

func (s *Server) sessionCreate(ctx context.Context, c *call, in *sessionCreateInput) (*reply, error) {
	spec := sandbox.Spec{
		Owner: c.owner, Ceilings: c.ceilings(), Image: or(in.image, ""), Network: sandbox.Network(or(in.network, "")),
		Durability: sandbox.Durability(or(in.durability, "")), WorkspaceKey: or(in.workspaceKey, ""),
		Isolation: sandbox.Isolation(or(in.isolation, "")), CPU: in.cpu, MemoryMB: in.memoryMB, Pids: in.pids,
		Env: secrets(in.env), Labels: in.labels, TTL: seconds(or(in.ttl, 0)),
	}
	info, err := s.manager.Create(ctx, spec, c.stage)
	if err != nil {
		return nil, err
	}
	c.session = info.ID
	return jsonReply(sessionResult{viewOf(info)}, "session %s is %s", info.ID, info.State)
}
