// The TypeScript SDK v2 in the matrix of clients, in either era of the protocol.
//
// Usage: node client_v2.mjs legacy|modern stdio PROGRAM | http URL | sse URL
// CAISSON_TOKEN is the token to come with.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { play, typed } from "./client_steps.mjs";

const [era, kind, target] = process.argv.slice(2);
const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";

function transport(authorization) {
  const options = { requestInit: { headers: authorization ? { authorization } : {} } };
  switch (kind) {
    case "stdio":
      return new StdioClientTransport({ command: target, args: ["serve"], env: process.env, stderr: "ignore" });
    case "http":
      return new StreamableHTTPClientTransport(new URL("/mcp", target), options);
    default:
      return new SSEClientTransport(new URL("/sse", target), options);
  }
}

async function connect(authorization) {
  const client = new Client({ name: "matrix-v2", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(transport(authorization));
  return typed({
    era: client.getProtocolEra(),
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args, onprogress) => client.callTool({ name, arguments: args }, { onprogress }),
    close: () => client.close(),
  });
}

await play(connect, process.env.CAISSON_TOKEN);
