import { join, relative } from "node:path";

const FOLDER = "uploads";
const TREE = "tree";

/** The folder of uploads in the state folder. */
export const uploadsFolder = (stateDir: string) => join(stateDir, FOLDER);

/** The files of an upload: an immutable host folder. */
export const uploadedTree = (stateDir: string, upload: string) => join(stateDir, FOLDER, upload, TREE);

/** Returns the upload whose files are in a folder, or null for any other folder. Neither path may contain links. */
export function uploadOfTree(stateDir: string, folder: string): string | null {
  const [top, upload, tree, ...rest] = relative(stateDir, folder).split("/");
  return top === FOLDER && tree === TREE && rest.length === 0 && /^up_[a-z2-7]{12}$/.test(upload ?? "") ? (upload as string) : null;
}
