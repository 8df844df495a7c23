import { join, relative } from "node:path";

const FOLDER = "uploads";
const TREE = "tree";

/** Where uploads are kept, in the state folder. */
export const uploadsFolder = (stateDir: string) => join(stateDir, FOLDER);

/** The files of an upload: a folder of the host's that nobody changes. */
export const uploadedTree = (stateDir: string, upload: string) => join(stateDir, FOLDER, upload, TREE);

/** The upload whose files a folder is, both without links; null for any other folder. */
export function uploadOfTree(stateDir: string, folder: string): string | null {
  const [top, upload, tree, ...rest] = relative(stateDir, folder).split("/");
  return top === FOLDER && tree === TREE && rest.length === 0 && /^up_[a-z2-7]{12}$/.test(upload ?? "") ? (upload as string) : null;
}
