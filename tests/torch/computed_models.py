def make(case, rank): raise NotImplementedError
