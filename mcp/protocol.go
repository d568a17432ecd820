package mcp

import (
	"slices"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// ProtocolVersions lists the revisions of MCP that the server speaks, the newest
// first.
func ProtocolVersions() []string {
	versions := slices.Clone(mcpgo.ValidProtocolVersions)
	slices.Sort(versions)
	slices.Reverse(versions)
	return versions
}
