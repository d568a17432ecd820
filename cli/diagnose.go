package cli

import (
	"context"

	"caisson/settings"
)

// diagnose asks the provider what it finds on the engine.
func (p Process) diagnose(ctx context.Context, parts engineParts, s settings.Settings) []finding {
	if err := parts.provider.Ping(ctx); err != nil {
		return []finding{{level: levelFail, name: "engine", detail: err.Error()}}
	}
	return []finding{{level: levelOK, name: "engine", detail: "answers"}}
}
