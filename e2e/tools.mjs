// Lists and calls the official filesystem, memory and everything servers through
// Caisson, as toolkits, with the official TypeScript SDK. The SDK checks each
// structured result against the schema that the tool declares.
//
// Usage: node tools.mjs stdio PROGRAM warm | http URL warm | http URL once
// What is wrong goes to standard error and makes the exit status 1.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, mode] = process.argv.slice(2);

const transports = {
  stdio: () => new StdioClientTransport({ command: target, args: ["serve"], env: process.env, stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL("/mcp", target)),
};

const client = new Client({ name: "e2e-tools", version: "1.0.0" });
await client.connect(transports[kind]());

const wanted = ["fs", "fse", "mem", "meme", "all", "alle"].map((prefix) => ({ fs: "read_text_file", me: "read_graph", al: "get_tiny_image" })[prefix.slice(0, 2)].replace(/^/, `${prefix}_`));
const patience = { timeout: 120_000, resetTimeoutOnProgress: true, onprogress: () => {} };

// The first list may come before all servers have been asked.
async function list() {
  const deadline = Date.now() + 150_000;
  for (;;) {
    const { tools } = await client.listTools();
    const names = new Set(tools.map((tool) => tool.name));
    if (wanted.every((name) => names.has(name))) {
      return tools;
    }
    assert.ok(Date.now() < deadline, `not listed: ${wanted.filter((name) => !names.has(name))}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function schemas(tools) {
  assert.equal(new Set(tools.map((tool) => tool.name)).size, tools.length);
  for (const tool of tools) {
    assert.match(tool.name, /^[a-z0-9_]{1,35}$/);
    assert.ok(tool.description.length > 0 && tool.description.length <= 2048, tool.name);
    assert.equal(tool.inputSchema.type, "object", tool.name);
    assert.ok(tool.inputSchema.properties, tool.name);
    assert.equal(JSON.stringify(tool.inputSchema).includes('"$ref"'), false, tool.name);
    for (const combinator of ["oneOf", "anyOf", "allOf"]) {
      assert.equal(tool.inputSchema[combinator], undefined, tool.name);
    }
    assert.equal(tool.outputSchema?.type, "object", tool.name);
    for (const hint of ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]) {
      assert.equal(typeof tool.annotations?.[hint], "boolean", `${tool.name} ${hint}`);
    }
  }
}

async function ok(name, args = {}, options = patience) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
  assert.equal(result.structuredContent.status, "success", name);
  return result;
}

const said = (result) => JSON.stringify(result.structuredContent.result);
const box = (result) => result.structuredContent.metadata.container;

async function filesystem(prefix, warm) {
  const write = await ok(`${prefix}_write_file`, { path: "/workspace/note.txt", content: "kept?" });
  assert.equal(write.structuredContent.metadata.mode, warm ? "warm" : "ephemeral");
  const read = await client.callTool({ name: `${prefix}_read_text_file`, arguments: { path: "/workspace/note.txt" } }, undefined, patience);
  assert.equal(!read.isError, warm, said(read));
  assert.equal(box(read) === box(write), warm);
  if (warm) {
    assert.match(said(read), /kept\?/);
  }
  const outside = await client.callTool({ name: `${prefix}_read_text_file`, arguments: { path: "/etc/passwd" } }, undefined, patience);
  assert.ok(outside.isError, "the server reads what it must not");
  const wrong = await client.callTool({ name: `${prefix}_read_text_file`, arguments: { path: 7 } }, undefined, patience);
  assert.match(wrong.content[0].text, /^invalid_argument: /);
}

async function memory(prefix, warm) {
  await ok(`${prefix}_create_entities`, { entities: [{ name: "keel", entityType: "part", observations: ["is of oak"] }] });
  assert.equal(said(await ok(`${prefix}_read_graph`)).includes("oak"), warm);
}

async function everything(prefix, warm) {
  assert.match(said(await ok(`${prefix}_echo`, { message: "ahoy" })), /ahoy/);
  assert.match(said(await ok(`${prefix}_get_sum`, { a: 2, b: 40 })), /42/);
  const picture = (await ok(`${prefix}_get_tiny_image`)).content.find((content) => content.type === "image");
  assert.equal(picture?.mimeType, "image/png");
  assert.equal(Buffer.from(picture.data, "base64").subarray(1, 4).toString(), "PNG");
  await ok(`${prefix}_get_structured_content`, { location: "Chicago" });

  const seen = [];
  const name = Object.keys(byName).find((each) => each.startsWith(`${prefix}_trigger_long_running_op`));
  const long = await ok(name, { duration: 6, steps: 4 }, { ...patience, onprogress: (p) => seen.push(p) });
  assert.match(said(long), /completed/);
  assert.ok(seen.some((p) => p.total === 4 && p.progress >= 1), JSON.stringify(seen));
  assert.deepEqual(seen.map((p) => p.progress), seen.map((p) => p.progress).sort((a, b) => a - b));

  const abort = new AbortController();
  const began = new Promise((resolve) => {
    const aborted = client.callTool({ name, arguments: { duration: 300, steps: 100 } }, undefined, { ...patience, timeout: 400_000, signal: abort.signal, onprogress: (p) => p.progress >= 1 && p.total && resolve() });
    assert.rejects(aborted).catch((error) => { throw error; });
  });
  await began;
  abort.abort();
  // The server goes on, and in warm mode it is the same one.
  assert.match(said(await ok(`${prefix}_echo`, { message: "after" })), /after/);
  if (warm) {
    assert.equal(said(await ok("mem_read_graph")).includes("oak"), true, "a cancelled call took another toolkit along");
  }
}

const tools = await list();
const byName = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
schemas(tools);
assert.equal(byName.fs_read_text_file.annotations.readOnlyHint, true);
const warm = mode === "warm";
const suffix = warm ? "" : "e";
await filesystem(`fs${suffix}`, warm);
await memory(`mem${suffix}`, warm);
await everything(`all${suffix}`, warm);
await client.close();
