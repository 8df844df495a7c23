import { describeBroken } from "../../src/suites/conformance/broken/describe-broken.ts";
import { describeRuntime } from "../../src/suites/conformance/describe-runtime.ts";
import { ociSubject } from "../support/oci-subject.ts";
import { requiredRuntimes } from "../support/run-suite.ts";

describeRuntime("oci-runc", () => ociSubject("runc"), { required: requiredRuntimes });
describeRuntime("oci-crun", () => ociSubject("crun"), { required: requiredRuntimes });

// Tests of what the fake runtime does not have are proven here.
describeBroken(
  "oci-runc",
  () => ociSubject("runc"),
  (test) => test.needs !== undefined,
);
