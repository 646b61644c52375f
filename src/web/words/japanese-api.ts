import type { englishApi, englishVerb } from "../../core/reason/english-api.ts";

const call = "{object} を{verb}。";

export const japaneseApi: Readonly<Record<keyof typeof englishApi, string>> = {
  Unauthorized: `${call}API サーバーが認証情報を拒否しました（{detail}）`,
  Forbidden: `${call}権限がありません（{detail}）。必要な権限: {right}`,
  NotInstalled: `${call}インストールされていません（run: lastcall setup crds --apply）`,
  NotServed: `${call}API サーバーが提供していません`,
  NoDrainPlan: "{object} を一覧する権限がないため、ドレイン計画を表示できません",
};

export const japaneseVerb: Readonly<Record<keyof typeof englishVerb, string>> = {
  Get: "読み取れません",
  List: "読み取れません",
  Watch: "読み取れません",
  Create: "作成できません",
  Update: "変更できません",
  Patch: "変更できません",
  Delete: "削除できません",
};
