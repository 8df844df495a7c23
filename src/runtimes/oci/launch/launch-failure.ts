import { constants } from "node:os";
import { CaissonError } from "../../../contract/error/error.ts";

/**
 * What a launcher reported when it failed: the step, the kernel's error number (0 if none) and what the step was about.
 */
export interface LaunchFailure {
  what: string;
  step: string;
  errno: number;
  text: string;
  /** The launcher's exit status, or that of the program that it ran. Null after a signal. */
  status?: number | null;
}

const { ENOENT, ENOTDIR, EPERM, EACCES, ENOSPC, EINVAL, ENOSYS, EDQUOT } = constants.errno;

const memoryFailures: Readonly<Record<string, (text: string, details: LaunchFailure) => CaissonError>> = {
  dump: (text, details) =>
    new CaissonError("unsupported", `the processes cannot be stored: ${text}`, {
      hint: "End the named process, or store the files alone. The sandbox continues.",
      details: { ...details },
    }),
  restore: (text, details) =>
    new CaissonError("unavailable", `the processes cannot be restored: ${text}`, {
      hint: "The image remains. It needs the same Caisson, programs and shared files as when it was taken.",
      details: { ...details },
    }),
};

/** Translates a launcher's failure by its step and error number alone. */
export function failureOf(failure: LaunchFailure): CaissonError {
  const { step, errno, text } = failure;
  const details = { ...failure };
  if (errno === ENOSPC || errno === EDQUOT) return new CaissonError("no_space", `the disk is full: ${text}`, { details });
  switch (step) {
    case "userns":
      return new CaissonError("unavailable", `this machine refuses user namespaces: ${text}`, {
        hint: "Run `caisson doctor` to see which kernel setting refuses them and how to change it.",
        details,
      });
    case "mapper":
    case "map":
      return new CaissonError("unavailable", `the sandbox's ids cannot be mapped: ${text}`, {
        hint: "Install newuidmap (package uidmap or shadow-utils) and give the user 65,536 ids: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.",
        details,
      });
    case "source":
      if (errno === ENOENT || errno === ENOTDIR) return new CaissonError("not_found", `${text} does not exist`, { details });
      return new CaissonError("denied", `${text} cannot be mounted`, { details });
    case "cover":
      return new CaissonError("unavailable", `Caisson's own state folder cannot be kept out of the sandbox: ${text}`, {
        hint: "Try again if the folder was moved, or share a folder that does not contain it.",
        details,
      });
    case "idmap":
      return new CaissonError("unsupported", `file owners in ${text} cannot be mapped into the sandbox`, {
        hint: `Use Linux 5.19 or later and a file system that supports it (ext4, xfs, btrfs, tmpfs …)${errno === EINVAL ? "; this one does not" : ""}. Or run Caisson as the folder's owner instead of root.`,
        details,
      });
    case "overlay":
      return new CaissonError("unsupported", `the layers of the sandbox's files cannot be mounted: ${text}`, {
        hint: "Use Linux 5.19 as root or 5.11 otherwise, and a state folder on a file system that supports an upper layer (not overlay, not NFS).",
        details,
      });
    case "disk-busy":
      return new CaissonError("conflict", `the session's disk is in use: ${text}`, {
        hint: "Try again after the sandbox that uses it has ended.",
        details,
      });
    case "disk":
      return new CaissonError("unsupported", `cannot create a disk of limited size: ${text}`, {
        hint:
          errno === ENOENT || errno === EPERM || errno === EACCES || errno === ENOSYS
            ? "Load the loop module: `modprobe loop`."
            : "Try without a disk limit.",
        details,
      });
    case "cgroup":
      return new CaissonError("unavailable", `the control group cannot be used: ${text}`, { details });
    case "runtime":
      return new CaissonError("unavailable", `the OCI runtime could not start the sandbox: ${text}`, {
        hint: "Run `caisson doctor` to try each OCI runtime and see what is missing.",
        details,
      });
    case "killed":
      return new CaissonError("unavailable", `the launcher ended before it was done${text === "" ? "" : `: ${text}`}`, { details });
    default:
      return otherFailure(failure);
  }
}

function otherFailure(failure: LaunchFailure): CaissonError {
  const { what, step, errno, text } = failure;
  const memoryFailure = memoryFailures[step];
  if (memoryFailure !== undefined) return memoryFailure(text, failure);
  return new CaissonError("internal", `launch ${what} failed at ${step}: ${text} (errno ${errno})`, { details: { ...failure } });
}
