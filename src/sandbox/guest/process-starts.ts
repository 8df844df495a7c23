import { CaissonError } from "../../contract/error/error.ts";
import type { Encodable, shapes } from "./fields.ts";
import type { Link } from "./link.ts";
import { GuestProcess, type ProcessObserver, type ProcessRequest } from "./process.ts";

/** Starts processes and attaches to them over a link. The promises reject with the guest's error, or with `lost`. */
export interface ProcessStarts {
  /** Also rejects with `unsupported` if the guest cannot keep the last output. */
  spawn(values: Encodable<typeof shapes.SPAWN>, observer?: ProcessObserver): Promise<GuestProcess>;
  attach(
    values: Encodable<typeof shapes.ATTACH>,
    options?: { follow?: boolean | undefined; observer?: ProcessObserver | undefined },
  ): Promise<GuestProcess>;
}

export function processStarts(link: Link, guest: { guestVersion: string; keepsLast: boolean }): ProcessStarts {
  const start = (request: ProcessRequest, observer: ProcessObserver = {}) =>
    new Promise<GuestProcess>((resolve, reject) => new GuestProcess(link, request, observer, { resolve, reject }));
  return {
    async spawn(values, observer) {
      if (values.keepLast && !guest.keepsLast) {
        throw new CaissonError("unsupported", `the sandbox's guest (${guest.guestVersion}) cannot keep a detached command's output`, {
          hint: "An older version of Caisson started it: create a new sandbox.",
        });
      }
      return start({ type: "SPAWN", values, what: `starting ${values.argv[0]}` }, observer);
    },
    attach: (values, { follow, observer } = {}) => start({ type: "ATTACH", values, what: `attaching to ${values.ref}`, follow }, observer),
  };
}
