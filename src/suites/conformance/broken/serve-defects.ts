import { type Defect, forgiving, notWhatItIs } from "./broken-runtime.ts";

/** Pretends to serve a port that is in conflict. */
const neverInConflict: Defect["sandbox"] = (good) => ({
  serve: (port, onConnection) =>
    forgiving(
      "conflict",
      () => good.serve(port, onConnection),
      () => ({ close() {} }),
    ),
});

/** Defects of ports that the host serves. */
export const serveDefects: Readonly<Record<string, Defect>> = {
  "serve: connections from inside carry bytes both ways, with half-close": {
    what: "closing one half closes both",
    sandbox: (good) => ({
      serve: (port, onConnection) =>
        good.serve(port, (connection) => {
          connection.stream.on("end", () => connection.stream.destroy());
          onConnection(connection);
        }),
    }),
  },
  "serve: the latest caller has the port, and the previous one after it closes": {
    what: "the first caller keeps the port",
    sandbox: (good) => {
      const claimedPorts = new Set<number>();
      return {
        async serve(port, onConnection) {
          if (claimedPorts.has(port)) return { close() {} };
          claimedPorts.add(port);
          return good.serve(port, onConnection);
        },
      };
    },
  },
  "serve: after the server closes, clients get an answer that says so": {
    what: "a claim is never released",
    sandbox: (good) => ({
      async serve(port, onConnection) {
        await good.serve(port, onConnection);
        return { close() {} };
      },
    }),
  },
  "serve: a port that a program inside uses is a conflict": {
    what: "a program's port is served",
    sandbox: neverInConflict,
  },
  "serve: a number that is not a port is invalid": {
    what: "a bad port gives the wrong error",
    sandbox: (good) => ({ serve: (port, onConnection) => forgiving("invalid", () => good.serve(port, onConnection), notWhatItIs) }),
  },
  "serve: a paused sandbox is served again after resume": {
    what: "a paused sandbox is served immediately",
    sandbox: neverInConflict,
  },
  "transparent: a connection to any address arrives with its destination": {
    what: "connections arrive without their destination",
    sandbox: (good) => ({
      serveTransparent: (service) =>
        good.serveTransparent({ ...service, onConnection: ({ stream }) => service.onConnection({ stream, destination: null }) }),
    }),
  },
  "transparent: the host answers name lookups from the queried address": {
    what: "questions get no answer",
    sandbox: (good) => ({ serveTransparent: (service) => good.serveTransparent({ ...service, onDatagram: () => null }) }),
  },
  "transparent: unserved ports refuse, and a program's own port stays reachable": {
    what: "all ports are served",
    sandbox: (good) => ({ serveTransparent: (service) => good.serveTransparent({ ...service, ports: [80, 81] }) }),
  },
  "transparent: an ordinary sandbox has no such network": {
    what: "every sandbox is transparent",
    config: (config) => (config.network.mode === "none" ? config : { ...config, network: { ...config.network, transparent: true } }),
  },
};
