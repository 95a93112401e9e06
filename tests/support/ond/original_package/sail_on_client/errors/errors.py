class ServerError(Exception):
    pass


class ApiError(ServerError):
    pass


class RoundError(ServerError):
    pass
