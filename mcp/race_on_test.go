//go:build race

package mcp_test

// large is the size of a large message. Under the race detector mcp-go's many
// passes over a message take a minute at 8 MiB, which clients do not wait.
const large = 2 << 20
