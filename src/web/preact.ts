/** The only import of Preact; JSX in this folder takes its runtime from the same package. */
export { type ComponentChildren, render, type VNode } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
