import { type Defect, forgiving, notWhatItIs } from "./broken-runtime.ts";

/** A port that cannot be had is had all the same. */
const neverInConflict: Defect["sandbox"] = (good) => ({
  serve: (port, onConnection) =>
    forgiving(
      "conflict",
      () => good.serve(port, onConnection),
      () => ({ close() {} }),
    ),
});

/** What can be wrong with ports that the host serves. */
export const serveDefects: Readonly<Record<string, Defect>> = {
  "serve: connections from inside carry bytes both ways, with half-close": {
    what: "the end of one half is the end of both",
    sandbox: (good) => ({
      serve: (port, onConnection) =>
        good.serve(port, (connection) => {
          connection.stream.on("end", () => connection.stream.destroy());
          onConnection(connection);
        }),
    }),
  },
  "serve: whoever asked last has the port, and the one before when it leaves": {
    what: "whoever asked first keeps the port",
    sandbox: (good) => {
      const taken = new Set<number>();
      return {
        async serve(port, onConnection) {
          if (taken.has(port)) return { close() {} };
          taken.add(port);
          return good.serve(port, onConnection);
        },
      };
    },
  },
  "serve: while nobody serves a port that was served, whoever connects is told so": {
    what: "a claim is never given up",
    sandbox: (good) => ({
      async serve(port, onConnection) {
        await good.serve(port, onConnection);
        return { close() {} };
      },
    }),
  },
  "serve: a port that a program inside has is a conflict": {
    what: "a port is served that a program has",
    sandbox: neverInConflict,
  },
  "serve: a number that is none is invalid": {
    what: "a bad port is some error",
    sandbox: (good) => ({ serve: (port, onConnection) => forgiving("invalid", () => good.serve(port, onConnection), notWhatItIs) }),
  },
  "serve: what serves a sandbox that is paused serves it when it goes on": {
    what: "a paused sandbox is served at once",
    sandbox: neverInConflict,
  },
  "transparent: a connection to any address arrives with where it wanted to go": {
    what: "nobody says where it wanted to go",
    sandbox: (good) => ({
      serveTransparent: (service) =>
        good.serveTransparent({ ...service, onConnection: ({ stream }) => service.onConnection({ stream, destination: null }) }),
    }),
  },
  "transparent: a question for a name is answered by the host, from where it was asked": {
    what: "questions get no answer",
    sandbox: (good) => ({ serveTransparent: (service) => good.serveTransparent({ ...service, onDatagram: () => null }) }),
  },
  "transparent: a port that is not served refuses, and a program's own is reached as ever": {
    what: "all ports are served",
    sandbox: (good) => ({ serveTransparent: (service) => good.serveTransparent({ ...service, ports: [80, 81] }) }),
  },
  "transparent: an ordinary sandbox has no such network": {
    what: "every sandbox is transparent",
    spec: (asked) => (asked.network.mode === "none" ? asked : { ...asked, network: { ...asked.network, transparent: true } }),
  },
};
