import { describeRuntime } from "../../conformance/describe-runtime.ts";
import { conformancePrograms } from "./conformance-programs.ts";
import { createFakeRuntime } from "./runtime.ts";

describeRuntime("fake", async () => ({ runtime: createFakeRuntime({ programs: conformancePrograms }) }));
