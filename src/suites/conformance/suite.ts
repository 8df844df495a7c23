import { attachTests } from "./attach-tests.ts";
import type { ConformanceTest } from "./context.ts";
import { endingTests } from "./ending-tests.ts";
import { fileTests } from "./file-tests.ts";
import { folderTests } from "./folder-tests.ts";
import { freezeTests } from "./freeze-tests.ts";
import { inputTests } from "./input-tests.ts";
import { lifecycleTests } from "./lifecycle-tests.ts";
import { limitTests } from "./limit-tests.ts";
import { mountTests } from "./mount-tests.ts";
import { pointsTests } from "./points-tests.ts";
import { portTests } from "./port-tests.ts";
import { processTests } from "./process-tests.ts";
import { serveTests } from "./serve-tests.ts";
import { stdinTests } from "./stdin-tests.ts";
import { tarTests } from "./tar-tests.ts";
import { transparentTests } from "./transparent-tests.ts";
import { watchTests } from "./watch-tests.ts";
import { workspaceTests } from "./workspace-tests.ts";

/** The requirements for every runtime, from basic to demanding. */
export const conformanceTests: readonly ConformanceTest[] = [
  ...processTests,
  ...stdinTests,
  ...endingTests,
  ...attachTests,
  ...fileTests,
  ...folderTests,
  ...watchTests,
  ...tarTests,
  ...portTests,
  ...serveTests,
  ...transparentTests,
  ...inputTests,
  ...lifecycleTests,
  ...workspaceTests,
  ...mountTests,
  ...limitTests,
  ...freezeTests,
  ...pointsTests,
];
