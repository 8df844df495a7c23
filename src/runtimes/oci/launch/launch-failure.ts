import { constants } from "node:os";
import { CaissonError } from "../../../contract/error.ts";

/** What the launcher said when it gave up: the step, the kernel's error number (0 when none) and what it was about. */
export interface LaunchFailure {
  what: string;
  step: string;
  errno: number;
  text: string;
  /** With which it ended; that of the program it became, for one that ran a program. Null after a signal. */
  status?: number | null;
}

const { ENOENT, ENOTDIR, EPERM, EACCES, ENOSPC, EINVAL, ENOSYS, EDQUOT } = constants.errno;

/** Translates a launcher's failure, by step and error number only. */
export function failureOf(failure: LaunchFailure): CaissonError {
  const { step, errno, text } = failure;
  const details = { ...failure };
  if (errno === ENOSPC || errno === EDQUOT) return new CaissonError("no_space", `the disk is full: ${text}`, { details });
  switch (step) {
    case "userns":
      return new CaissonError("unavailable", `user namespaces are refused on this machine: ${text}`, {
        hint: "`caisson doctor` says which setting of the kernel refuses them, and how to change it.",
        details,
      });
    case "mapper":
    case "map":
      return new CaissonError("unavailable", `the sandbox's ids cannot be mapped: ${text}`, {
        hint: "Install newuidmap (package uidmap or shadow-utils) and give the user 65,536 ids: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.",
        details,
      });
    case "source":
      if (errno === ENOENT || errno === ENOTDIR) return new CaissonError("not_found", `there is no ${text}`, { details });
      return new CaissonError("denied", `${text} cannot be mounted`, { details });
    case "cover":
      return new CaissonError("unavailable", `Caisson's own state folder cannot be kept out of the sandbox: ${text}`, {
        hint: "Was it moved? Try again, or share a folder that does not hold it.",
        details,
      });
    case "idmap":
      return new CaissonError("unsupported", `the owners of files in ${text} cannot be mapped into the sandbox`, {
        hint: `It takes Linux 5.19 and a file system that can (ext4, xfs, btrfs, tmpfs …)${errno === EINVAL ? "; this one cannot" : ""}. Run Caisson as the folder's owner instead of root.`,
        details,
      });
    case "overlay":
      return new CaissonError("unsupported", `the layers of the sandbox's files cannot be mounted: ${text}`, {
        hint: "Overlay mounts take Linux 5.19 as root and 5.11 otherwise, and a state folder on a file system that can hold an upper layer (not overlay, not NFS).",
        details,
      });
    case "disk-busy":
      return new CaissonError("conflict", `the session's disk is in use: ${text}`, {
        hint: "Another sandbox has it; try again when that one has ended.",
        details,
      });
    case "disk":
      return new CaissonError("unsupported", `a disk of limited size cannot be made: ${text}`, {
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
        hint: "`caisson doctor` tries each OCI runtime and says what is missing.",
        details,
      });
    case "killed":
      return new CaissonError("unavailable", `the launcher ended before it was done${text === "" ? "" : `: ${text}`}`, { details });
    default:
      return new CaissonError("internal", `launch ${failure.what} failed at ${step}: ${text} (errno ${errno})`, { details });
  }
}
