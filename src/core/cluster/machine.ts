import type { Instant } from "../time/time.ts";
import type { MachineNames } from "./machine-name.ts";

/** What a cloud says of a machine; `Absent` means that it answered that there is none. */
export type MachineState =
  | { readonly kind: "Absent" }
  | {
      readonly kind: "Present";
      /**
       * The cloud's id of this machine. A machine recreated under the same name has another one.
       */
      readonly id: string;
      /** By the cloud's clock, as `asOf`. */
      readonly bornAt: Instant | undefined;
      /**
       * The cloud's own time when it said all this, by the `Date` of its answer. Absent: it has
       * told none, or its clock is that of the API server.
       */
      readonly asOf?: Instant | undefined;
      /** It is running, and nobody has requested its end, as far as the cloud shows. */
      readonly running: boolean;
      /** Absent: the cloud has no name for it that its Node would have. */
      readonly names?: MachineNames | undefined;
    };
