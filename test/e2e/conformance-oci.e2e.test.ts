import { describeBroken } from "../../src/suites/conformance/broken/describe-broken.ts";
import { describeRuntime } from "../../src/suites/conformance/describe-runtime.ts";
import { ociSubject } from "../support/oci-subject.ts";
import { requiredRuntimes } from "../support/run-suite.ts";

describeRuntime("oci-runc", () => ociSubject("runc"), { required: requiredRuntimes });
describeRuntime("oci-crun", () => ociSubject("crun"), { required: requiredRuntimes });

// Proves the conformance tests that need something the fake runtime lacks.
describeBroken(
  "oci-runc",
  () => ociSubject("runc"),
  (test) => test.needs !== undefined,
);
