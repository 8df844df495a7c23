"use strict";
// Runs inside a sandbox, before every Node program (NODE_OPTIONS=--require). A Node without support for HTTPS_PROXY,
// and an agent that a program created itself, would try to connect directly, but there is no route. This file makes
// them request a tunnel from the proxy. It keeps what a program chose itself, loads no module before the program uses
// it, prints nothing and throws nothing.
const { env } = process;
const ANSWER_BYTES_MAX = 16384;
const REFUSAL_BYTES_MAX = 2048;
const REFUSAL_WAIT_MS = 1000;

try {
  const proxy = new URL(env.HTTPS_PROXY || env.https_proxy);
  if (proxy.protocol === "http:") install(proxy);
} catch {
  // No proxy, or none that we support: the program runs as it would without us.
}

function install(proxy) {
  // If a program sets this variable, Node uses the proxy itself. We do not set it, because Node then loads fetch before
  // every program.
  if (env.NODE_USE_ENV_PROXY !== "1") teachFetch(proxy);
  // Most programs never load http, and loading it costs more than all of this. Its agents exist when its client
  // requests this channel.
  const channels = require("node:diagnostics_channel");
  const { channel } = channels;
  channels.channel = function (name) {
    if (name === "http.client.request.start") {
      channels.channel = channel;
      attempt(() => teachAgents(proxy));
    }
    return channel.call(this, name);
  };
  // Before version 18 there is no such channel.
  if (Number.parseInt(process.versions.node, 10) < 18) teachAgents(proxy);
}

function attempt(act) {
  try {
    act();
  } catch {
    // See above: the program must still run.
  }
}

/**
 * Teaches every agent of http and https, including those that programs create, unless it has its own proxy or makes its
 * own connections.
 */
function teachAgents(proxy) {
  const agent = require("node:_http_agent").Agent.prototype;
  const { createSocket } = agent;
  const taught = new Set();
  agent.createSocket = function (...args) {
    const secure = this.protocol === "https:";
    if (!taught.has(secure)) {
      taught.add(secure);
      attempt(() => teachAgent(secure ? require("node:https").Agent.prototype : agent, { proxy, secure }));
    }
    return createSocket.apply(this, args);
  };
}

function teachAgent(agent, { proxy, secure }) {
  const { createConnection } = agent;
  agent.createConnection = function (...args) {
    const options = args[0];
    const done = args[args.length - 1];
    const { proxyEnv } = this.options || {};
    const mine = options !== null && typeof options === "object" && typeof done === "function";
    if (!mine || options.socket || options.socketPath || options.path || proxyEnv || isDirect(options.host, options.port)) {
      return createConnection.apply(this, args);
    }
    tunnel(proxy, options, (error, socket) => {
      if (error) return done(error);
      if (options.timeout) socket.setTimeout(options.timeout);
      let connection = socket;
      try {
        if (secure) connection = createConnection.call(this, { ...options, socket });
      } catch (failure) {
        socket.destroy();
        return done(failure);
      }
      done(null, connection);
    });
  };
}

/**
 * fetch takes its connections from a dispatcher that it shares with the undici package. The first of them to load
 * creates it.
 */
function teachFetch(proxy) {
  const { fetch: plainFetch } = globalThis;
  if (typeof plainFetch !== "function") return;
  const keys = [Symbol.for("undici.globalDispatcher.2"), Symbol.for("undici.globalDispatcher.1")];
  const seen = new WeakSet();
  const dispatcherAt = (key) => {
    const { value } = Object.getOwnPropertyDescriptor(globalThis, key) || {};
    return value;
  };
  const adopt = (key) => {
    const dispatcher = dispatcherAt(key);
    if (dispatcher === undefined || seen.has(dispatcher)) return;
    // Newer dispatchers put themselves behind a wrapper for older ones.
    const isWrapper = dispatcher.constructor.name === "Dispatcher1Wrapper";
    const better = isWrapper ? new dispatcher.constructor(dispatcherAt(keys[0])) : tunnelling(dispatcher, proxy);
    seen.add(better || dispatcher);
    if (better) globalThis[key] = better;
  };
  const adoptAll = () => {
    for (const key of keys) attempt(() => adopt(key));
  };
  // undici reads these keys while it loads, and then stores its own dispatcher there.
  for (const key of keys) Object.defineProperty(globalThis, key, { configurable: true, get: () => void queueMicrotask(adoptAll) });
  const { fetch } = {
    fetch(input, init = undefined) {
      attempt(() => new Headers());
      adoptAll();
      return plainFetch.call(this, input, init);
    },
  };
  Object.defineProperty(globalThis, "fetch", { ...Object.getOwnPropertyDescriptor(globalThis, "fetch"), value: fetch });
}

/** Returns the same agent with tunnels, or null for a special dispatcher that a program chose on purpose. */
function tunnelling(dispatcher, proxy) {
  const part = (name) => dispatcher[Object.getOwnPropertySymbols(dispatcher).find((symbol) => symbol.description === name)];
  const options = part("options");
  const factory = part("factory");
  const isPlain = dispatcher.constructor.name === "Agent" && (factory === undefined || factory.name === "defaultFactory");
  if (!isPlain || options === undefined || typeof options.connect === "function") return null;
  const tlsOptions = typeof options.connect === "object" ? options.connect : {};
  const connect = ({ hostname, port, protocol, servername }, done) => {
    const secure = protocol === "https:";
    tunnel(proxy, { host: hostname, port: port || (secure ? 443 : 80) }, (error, socket) => {
      if (error || !secure) return done(error, socket);
      const host = hostname.replace(/^\[|\]$/g, "");
      const name = servername || (require("node:net").isIP(host) ? "" : host);
      const tls = require("node:tls").connect({ ALPNProtocols: ["http/1.1"], ...tlsOptions, host, servername: name, socket });
      const failed = (failure) => done(failure);
      tls.once("error", failed).once("secureConnect", () => done(null, tls.off("error", failed)));
    });
  };
  const agent = new dispatcher.constructor({ ...options, connect });
  const { dispatch } = agent;
  agent.dispatch = function (request, handler) {
    const { hostname, port } = new URL(request.origin);
    return isDirect(hostname, port) ? dispatcher.dispatch(request, handler) : dispatch.call(this, request, handler);
  };
  return agent;
}

/** Requests a connection from the proxy. `done` receives a socket to write to, or an error with the proxy's answer. */
function tunnel(proxy, { host, port }, done) {
  const authority = `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
  const socket = require("node:net").connect({ host: proxy.hostname, port: Number(proxy.port || 80), noDelay: true });
  let bytes = Buffer.alloc(0);
  let isOver = false;
  const end = (error) => {
    if (isOver) return;
    isOver = true;
    socket.off("readable", read).off("error", end).off("end", ended);
    if (error === undefined) return process.nextTick(done, null, socket);
    socket.on("error", () => {}).destroy();
    done(error);
  };
  const ended = () => end(refusal(bytes, authority));
  const read = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) bytes = Buffer.concat([bytes, chunk]);
    const head = bytes.indexOf("\r\n\r\n");
    if (head < 0) return bytes.length > ANSWER_BYTES_MAX ? ended() : undefined;
    if (!/^HTTP\/1\.[01] 2/.test(bytes.toString("latin1", 0, head))) {
      const [, length = REFUSAL_BYTES_MAX] = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString("latin1", 0, head)) || [];
      if (bytes.length - head - 4 >= Math.min(Number(length), REFUSAL_BYTES_MAX)) ended();
      else setTimeout(ended, REFUSAL_WAIT_MS).unref();
      return;
    }
    if (bytes.length > head + 4) socket.unshift(bytes.subarray(head + 4));
    end();
  };
  socket.on("readable", read).on("error", end).on("end", ended);
  const credentials = proxy.username ? Buffer.from(decodeURIComponent(`${proxy.username}:${proxy.password}`)).toString("base64") : null;
  const extra = credentials === null ? "" : `Proxy-Authorization: Basic ${credentials}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${extra}\r\n`);
}

function refusal(bytes, authority) {
  const [head = "", ...body] = bytes.toString("utf8").split("\r\n\r\n");
  const said = [head.split("\r\n")[0].replace(/^HTTP\/1\.[01] /, ""), body.join("\r\n\r\n").slice(0, REFUSAL_BYTES_MAX).trim()];
  const error = new Error(`No connection to ${authority}: the proxy said ${said.filter((text) => text !== "").join(": ") || "nothing"}`);
  return Object.assign(error, { code: "ERR_PROXY_TUNNEL" });
}

/** Checks whether NO_PROXY exempts this host and port. */
function isDirect(host, port) {
  const name = String(host)
    .toLowerCase()
    .replace(/^\[|\]$/g, "");
  return (env.NO_PROXY || env.no_proxy || "").split(/[\s,]+/).some((entry) => {
    if (entry === "" || entry === "*") return entry === "*";
    // An address with many colons has no port unless it is in brackets.
    const [, pattern, only] = /^\[?((?:[^:]*:){2,}[^:\]]*|[^:\]]*)\]?(?::(\d+))?$/.exec(entry.toLowerCase()) || [];
    if (pattern === undefined || (only !== undefined && only !== String(port))) return false;
    const wanted = pattern.replace(/^\*?\./, "");
    return name === wanted || name.endsWith(`.${wanted}`);
  });
}
